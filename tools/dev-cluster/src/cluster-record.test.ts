/** What a cluster's folder says about it: its record, and the end of its processes' logs. */
import assert from "node:assert/strict";
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type ClusterRecord, readRecord, removeEmptyFolder, writeRecord } from "./cluster-record.ts";
import { Failure } from "./failure.ts";
import { tailOf } from "./processes.ts";
import { defaultChoices } from "./settings.ts";

function aState(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "cox-record-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "state");
}

const record: ClusterRecord = { requested: { nodeName: "n1" }, choices: { ...defaultChoices(), nodeName: "n1" } };

test("a record is read as it was written, and one of an earlier version, too; where there is none it is absent", (t) => {
  const state = aState(t);
  assert.equal(readRecord(state), undefined);
  writeRecord(state, record);
  assert.deepEqual(readRecord(state), record);
  const { requested: asked, choices } = record;
  writeFileSync(join(state, "cluster.json"), JSON.stringify({ asked, choices }));
  assert.deepEqual(readRecord(state), record);
  writeFileSync(`${state}-file`, "");
  assert.equal(readRecord(`${state}-file`), undefined, "no folder at all");
});

for (const [what, text] of [
  ["cut off", '{"requested": {}, "choi'],
  ["without its choices", '{"requested": {}}'],
  ["without what was requested", '{"choices": {}}'],
] as const)
  test(`a record that is ${what} is damaged`, (t) => {
    const state = aState(t);
    writeRecord(state, record);
    writeFileSync(join(state, "cluster.json"), text);
    assert.throws(
      () => readRecord(state),
      (err) => err instanceof Failure && /cluster\.json is damaged; .\/cox down --purge/.test(err.message),
    );
  });

test("a record that cannot be read says why", (t) => {
  const state = aState(t);
  mkdirSync(join(state, "cluster.json"), { recursive: true });
  assert.throws(() => readRecord(state), /^Error: cannot read \S+cluster\.json: EISDIR/);
});

test("the folder of a named cluster goes when it is empty, the default one's stays", (t) => {
  const state = aState(t);
  mkdirSync(state, { recursive: true });
  removeEmptyFolder("default", state);
  assert.ok(existsSync(state));
  writeFileSync(join(state, "file"), "");
  removeEmptyFolder("b", state);
  assert.ok(existsSync(state));
  rmSync(join(state, "file"));
  removeEmptyFolder("b", state);
  assert.equal(existsSync(state), false);
});

test("the end of a log is its last lines, without a usage below them", (t) => {
  const state = aState(t);
  mkdirSync(join(state, "logs"), { recursive: true });
  const file = join(state, "logs", "kubelet.log");
  assert.equal(tailOf({ state } as never, "kubelet", 2), "(no log)");
  writeFileSync(file, "one\ntwo\nthree\n\n");
  assert.equal(tailOf({ state } as never, "kubelet", 2), "two\nthree");
  writeFileSync(file, `${readFileSync(file, "utf8").trim()}\nError: unknown flag\nUsage:\n  kubelet [flags]\n`);
  assert.equal(tailOf({ state } as never, "kubelet", 2), "three\nError: unknown flag");
});

test("a record is replaced as a whole, in a folder that others cannot list", (t) => {
  const state = aState(t);
  writeRecord(state, record);
  assert.equal(statSync(state).mode & 0o777, 0o711);
  const file = join(state, "cluster.json");
  const before = readFileSync(file, "utf8");
  linkSync(file, `${file}.earlier`);
  writeRecord(state, { ...record, requested: {} });
  assert.equal(readFileSync(`${file}.earlier`, "utf8"), before, "the earlier file is not written to");
  assert.deepEqual(readRecord(state)?.requested, {});
  assert.deepEqual(readdirSync(state), ["cluster.json", "cluster.json.earlier"]);
  assert.match(before, /^\{\n {2}"requested": \{\n {4}"nodeName": "n1"\n {2}\},\n/);
});

test("the folder of named clusters goes with the last of them", (t) => {
  const clusters = aState(t);
  for (const name of ["a", "b"]) mkdirSync(join(clusters, name), { recursive: true });
  removeEmptyFolder("a", join(clusters, "a"));
  assert.deepEqual(readdirSync(clusters), ["b"]);
  removeEmptyFolder("b", join(clusters, "b"));
  assert.equal(existsSync(clusters), false);
});
