import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

/** Large modules that most servers never need; they must be imported on first use. */
const late = ["express", "@peculiar/x509", "@grpc/grpc-js", "etcd3", "protobufjs/src/root.js"];

test("a start does not load what it may never need", async () => {
  const program = `
    import { createRequire } from "node:module";
    process.argv.push("kube-apiserver", "--help");
    await import(${JSON.stringify(join(import.meta.dirname, "main.ts"))});
    console.log(JSON.stringify(Object.keys(createRequire(import.meta.url).cache)));`;
  const args = ["-C", "cox-source", "--input-type=module", "--eval", program];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const lines = stdout.trimEnd().split("\n");
  const files = JSON.parse(lines.pop() ?? "") as string[];
  assert.match(lines.join("\n"), /^Usage:\n {2}kube-apiserver /m);
  assert.ok(files.some((file) => file.includes("/node_modules/protobufjs/minimal.js")));
  const found = late.filter((name) => files.some((file) => file.includes(`/node_modules/${name}`)));
  assert.deepEqual(found, []);
});
