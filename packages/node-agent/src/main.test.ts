import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

/** Runs the kubelet until it exits. */
function kubelet(...flags: string[]): Promise<{ code: number; text: string }> {
  const args = ["-C", "cox-source", join(import.meta.dirname, "main.ts"), ...flags];
  return new Promise((resolve) => {
    execFile(process.execPath, args, (err, stdout, stderr) => {
      resolve({ code: err === null ? 0 : Number(err.code), text: stdout + stderr });
    });
  });
}

test("--help shows the kubelet's own defaults of feature gates", async () => {
  const { code, text } = await kubelet("--help");
  assert.equal(code, 0);
  for (const line of [
    "CPUManagerPolicyOptions=true|false (BETA - default=false)",
    "CSIMigrationAWS=true|false (BETA - default=false)",
    "TopologyAwareHints=true|false (BETA - default=true)",
  ])
    assert.ok(text.includes(line), line);
  assert.ok(!text.includes("ServerSideFieldValidation"));
});

test("the kubelet does not start with an unknown feature gate", async () => {
  const { code, text } = await kubelet("--feature-gates=ServerSideFieldValidation=true");
  assert.notEqual(code, 0);
  assert.match(text, /unrecognized feature gate: ServerSideFieldValidation/);
});
