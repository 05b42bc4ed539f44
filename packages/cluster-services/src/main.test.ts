/** The program itself: what it prints and refuses without a cluster. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

function run(...args: string[]): { code: number | null; out: string; err: string } {
  const main = join(import.meta.dirname, "main.ts");
  const { status, stdout, stderr } = spawnSync(process.execPath, ["-C", "cox-source", main, ...args], { encoding: "utf8" });
  return { code: status, out: stdout, err: stderr };
}

test("prints the rights of the chosen parts and of their lease", () => {
  const { code, out } = run("--print-rights", "--disable=*", "--enable=metrics-api", "--leader-elect-resource-name=mine");
  assert.equal(code, 0);
  assert.match(out, /^apiVersion: v1\nitems:/);
  assert.match(out, /name: coxswain-services:metrics-api\n/);
  assert.match(out, /resourceNames:\n\s+- mine\n/);
  assert.doesNotMatch(out, /coxswain-services:dns/);
});

for (const { flags, message } of [
  { flags: ["--enable=proxy"], message: /^Error: "proxy" is not in the list of known parts: / },
  { flags: ["--leader-elect-resource-lock=files"], message: /^Error: --leader-elect-resource-lock: / },
  { flags: ["--leader-elect-lease-duration=1s"], message: /^Error: --leader-elect: / },
  { flags: ["--kubeconfig=/none"], message: /^Error: unable to load the client configuration: / },
])
  test(`${flags.join(" ")} is refused in one line`, () => {
    const { code, out, err } = run("--print-rights=false", ...flags);
    assert.deepEqual([code, out, err.trimEnd().split("\n").length], [1, "", 1], err);
    assert.match(err, message);
  });

test("without leader election its other flags are not looked at", () => {
  assert.equal(run("--print-rights", "--leader-elect=false", "--leader-elect-lease-duration=1s").code, 0);
});
