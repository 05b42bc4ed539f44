import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";

const program = join(import.meta.dirname, "../testing/small-daemon.ts");

async function run(args: readonly string[], during?: (child: ChildProcess) => void) {
  const child = spawn(process.execPath, ["-C", "cox-source", program, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    stdout += text;
    if (text.includes("started")) during?.(child);
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    stderr += text;
  });
  const [code] = await once(child, "close");
  return { code, stdout, stderr };
}

for (const { args, code, stdout = /^$/, stderr = /^$/ } of [
  { args: ["--version"], code: 0, stdout: /^Kubernetes v1\.23\.0\n$/ },
  { args: ["--version=raw"], code: 0, stdout: /"gitVersion":"v1\.23\.0"/ },
  { args: ["-h"], code: 0, stdout: /^A small daemon\.\n\nUsage:\n {2}small-daemon \[flags\]\n\nGeneric flags:\n/ },
  { args: ["--nope=1"], code: 1, stderr: /^Error: unknown flag: --nope\nUsage:\n {2}small-daemon \[flags\]\n/ },
  { args: ["--feature-gates=Nope=true"], code: 1, stderr: /^Error: unrecognized feature gate: Nope\n/ },
  { args: ["--mode=end"], code: 0, stdout: /^started\n$/ },
  {
    args: ["--mode=end", "--feature-gates=DynamicKubeletConfig=true"],
    code: 0,
    stdout: /^started\n$/,
    stderr: /^W.* Setting deprecated feature gate DynamicKubeletConfig=true\. It will be removed in a future release\.\n$/,
  },
  {
    args: ["--mode=end", "--log-json-split-stream", "--logging-format=json", "--unused=5"],
    code: 0,
    stdout: /^\{.*"this flag is accepted and has no effect yet".*\}\nstarted\n$/,
  },
  {
    args: ["--mode=fail", "--log-json-split-stream", "--logging-format=json", "--unused=5"],
    code: 255,
    stdout: /^\{.*"this flag is accepted and has no effect yet".*\}\nstarted\n$/,
    stderr: /^\{.*"small-daemon failed".*\}\n$/,
  },
  {
    args: ["--mode=end", "--log-json-split-stream", "--unused=5"],
    code: 0,
    stdout: /^started\n$/,
    stderr: /^W.*"this flag is accepted and has no effect yet" flag="--unused" value="5"\n$/,
  },
  {
    args: ["--mode=end", "--unused=5"],
    code: 0,
    stdout: /started/,
    stderr: /^W.*"this flag is accepted and has no effect yet" flag="--unused" value="5"\n$/,
  },
  { args: ["--mode=end", "--old=5"], code: 0, stdout: /started/, stderr: /^Flag --old has been deprecated, use --new\n$/ },
  { args: ["--mode=end", "-v=1"], code: 0, stdout: /started/, stderr: /FLAG: --mode="end"\n/ },
  { args: ["--mode=end", "--logging-format=xml"], code: 1, stderr: /^Error: unsupported log format: xml\n/ },
  { args: ["--mode=refuse"], code: 1, stdout: /started/, stderr: /^Error: --mode must be something else\n$/ },
  { args: ["--mode=fail"], code: 255, stdout: /started/, stderr: /^F.*"small-daemon failed" err="no port: taken"\n$/ },
  {
    args: ["--mode=reject"],
    code: 0,
    stdout: /started\nstill here\n/,
    stderr: /^E.*unhandled promise rejection.* err="forgotten"\n$/,
  },
  {
    args: ["--mode=reject", "--really-crash-for-testing"],
    code: 255,
    stdout: /started\n$/,
    stderr: /^F.*unhandled promise rejection.* err="forgotten"\n$/,
  },
  { args: ["--mode=throw"], code: 255, stdout: /started/, stderr: /^F.*"uncaught exception" err="out of the blue"\n$/ },
] as { args: string[]; code: number; stdout?: RegExp; stderr?: RegExp }[]) {
  test(`small-daemon ${args.join(" ")} ends with ${code}`, async () => {
    const result = await run(args);
    assert.equal(result.code, code, result.stderr);
    assert.match(result.stdout, stdout);
    assert.match(result.stderr, stderr);
  });
}

test("the first SIGTERM stops it gracefully", async () => {
  const { code, stdout } = await run(["--mode=wait"], (child) => child.kill("SIGTERM"));
  assert.deepEqual([code, stdout], [0, "started\ndrained\n"]);
});

test("a program that ends with the reason of its stop has not failed", async () => {
  const { code, stdout, stderr } = await run(["--mode=leave"], (child) => child.kill("SIGINT"));
  assert.deepEqual([code, stdout], [0, "started\n"]);
  assert.doesNotMatch(stderr, /failed/);
});

test("a second signal ends it at once with 1", async () => {
  const { code } = await run(["--mode=hang"], (child) => {
    child.kill("SIGTERM");
    child.stderr?.once("data", () => child.kill("SIGINT")); // logged after the first signal
  });
  assert.equal(code, 1);
});
