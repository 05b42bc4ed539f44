import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";

const program = join(import.meta.dirname, "main.ts");
const configMap = '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","creationTimestamp":null},"data":{"k":"v"}}';

function run(args: readonly string[], input = ""): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, ["-C", "cox-source", program, ...args], { input, encoding: "utf8" });
}

function folderWith(t: TestContext, files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), "cox-convert-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

test("writes files of the same name, in all three encodings or in the requested one", (t) => {
  const folder = folderWith(t, { "a.b.json": configMap, "c.yaml": "kind: ConfigMap\napiVersion: v1\n" });
  const out = join(folder, "out");
  const inputs = [join(folder, "a.b.json"), join(folder, "c.yaml")];
  assert.deepEqual(run(["--out-dir", out, ...inputs]).status, 0);
  assert.deepEqual(readdirSync(out).sort(), ["a.b.json", "a.b.pb", "a.b.yaml", "c.json", "c.pb", "c.yaml"]);
  assert.deepEqual(JSON.parse(readFileSync(join(out, "a.b.json"), "utf8")), JSON.parse(configMap));
  rmSync(out, { recursive: true });
  run(["--to", "protobuf", "--out-dir", out, ...inputs]);
  assert.deepEqual(readdirSync(out).sort(), ["a.b.pb", "c.pb"]);
});

test("converts standard input, also to another version", () => {
  const { status, stdout } = run(["--to", "yaml", "--api-version", "batch/v1"], "kind: CronJob\napiVersion: batch/v1beta1\n");
  assert.equal(status, 0);
  assert.match(stdout, /^apiVersion: batch\/v1\nkind: CronJob\n/);
});

test("names a file that it cannot convert, continues with the others, and exits with 1", (t) => {
  const folder = folderWith(t, { "bad.json": '{"kind":', "good.json": configMap });
  const { status, stderr } = run([
    "--out-dir",
    join(folder, "out"),
    ...["bad.json", "good.json", "none.json"].map((f) => join(folder, f)),
  ]);
  assert.equal(status, 1);
  assert.match(stderr, /bad\.json: unexpected end of JSON input\n.*none\.json: ENOENT/s);
  assert.deepEqual(readdirSync(join(folder, "out")).sort(), ["good.json", "good.pb", "good.yaml"]);
});

test("standard input becomes a file with the name object, and is named in warnings and errors", (t) => {
  const folder = folderWith(t, {});
  const out = join(folder, "a", "b");
  const { status, stdout, stderr } = run(["--out-dir", out], '{"kind":"Pod","apiVersion":"v1","spec":{"a":1}}');
  assert.deepEqual([status, stdout, stderr], [0, "", 'standard input: warning: unknown field "spec.a"\n']);
  assert.deepEqual(readdirSync(out).sort(), ["object.json", "object.pb", "object.yaml"]);
  const failed = run([], "kind: Pod\n");
  assert.deepEqual([failed.status, failed.stderr], [1, "standard input: the object has no apiVersion: pass --api-version\n"]);
});

test("a warning is given for one encoding too, and the output is unaffected", () => {
  const { status, stdout, stderr } = run(["--to", "json"], '{"kind":"Pod","apiVersion":"v1","spec":{"a":1}}');
  assert.deepEqual([status, stderr], [0, 'standard input: warning: unknown field "spec.a"\n']);
  assert.equal(JSON.parse(stdout).kind, "Pod");
});

for (const flag of ["-h", "--help"])
  test(`${flag} prints the usage`, () => {
    const { status, stdout, stderr } = run([flag, "--nope"]);
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, /^usage: convert \[--to json\|yaml\|protobuf\]/);
  });

for (const { args, message } of [
  { args: ["--to", "xml"], message: '--to is one of json, yaml, protobuf, not "xml"' },
  { args: ["--api-version", "a/b/c"], message: '--api-version is GROUP/VERSION, or v1 for the core group, not "a/b/c"' },
  { args: ["--api-version", ""], message: '--api-version is GROUP/VERSION, or v1 for the core group, not ""' },
  { args: ["--api-version", "apps/"], message: '--api-version is GROUP/VERSION, or v1 for the core group, not "apps/"' },
  { args: ["--nope"], message: "Unknown option '--nope'" },
  { args: ["a", "b"], message: "more than one file needs --out-dir" },
]) {
  test(`ends with 2 and the usage for ${args.join(" ")}`, () => {
    const { status, stdout, stderr } = run(args);
    assert.equal(status, 2);
    assert.equal(stdout, "");
    assert.ok(stderr.startsWith(`convert: ${message}`), stderr);
    assert.match(stderr, /usage: convert/);
  });
}
