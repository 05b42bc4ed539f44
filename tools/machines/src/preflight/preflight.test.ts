import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { preflightEtcdData } from "./preflight.ts";

const folder = mkdtempSync(join(tmpdir(), "preflight-"));
after(() => rmSync(folder, { recursive: true }));
const withData = join(folder, "etcd");
mkdirSync(join(withData, "member"), { recursive: true });
const name = `DirAvailable-${withData.replaceAll("/", "-")}`;

function check(dataDir: string, ...ignored: string[]): string[] {
  const lines: string[] = [];
  preflightEtcdData(dataDir, { ignored, print: (line) => lines.push(line) });
  return lines;
}

test("preflight: a machine with the data of another etcd where the cluster has its own is refused", () => {
  assert.throws(() => check(withData), { message: new RegExp(`\\[${name}\\] ${withData}/member has the data of an etcd`) });
});

test("preflight: an empty or missing folder for etcd's data is accepted", () => {
  assert.deepEqual(check(folder), []);
  assert.deepEqual(check(join(folder, "missing")), []);
});

test("preflight: an ignored error of etcd's data is printed as a warning", () => {
  const lines = check(withData, name);
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? "", new RegExp(`^\\[preflight\\] warning \\[${name}\\] `));
});
