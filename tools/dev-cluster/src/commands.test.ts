import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { test } from "node:test";
import { exec, need, passThrough, tryExec, which } from "./commands.ts";
import { Failure } from "./failure.ts";

for (const { script, want } of [
  { script: "exit 3", want: 3 },
  { script: "kill -HUP $$", want: 129 },
  { script: "kill -INT $$", want: 130 },
  { script: "kill -KILL $$", want: 137 },
  { script: "kill -TERM $$", want: 143 },
])
  test(`a program that ends by ${script} has the exit code ${want}`, async () =>
    assert.equal(await passThrough("sh", ["-c", script]), want));

test("signals are forwarded to a program only while it runs, and other listeners stay", async (t) => {
  const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const own = (): void => {};
  for (const name of names) process.on(name, own);
  t.after(() => {
    for (const name of names) process.off(name, own);
  });
  const counts = (): number[] => names.map((name) => process.listenerCount(name));
  const before = counts();
  const ended = passThrough("true", []);
  assert.deepEqual(
    counts(),
    before.map((count) => count + 1),
  );
  await ended;
  assert.deepEqual(counts(), before);
  await assert.rejects(passThrough("/no/such/program", []), /^Error: cannot run \/no\/such\/program: .*ENOENT/);
  assert.deepEqual(counts(), before);
});

test("a program's output is its result, and it reads the given input, of which it may leave some", async () => {
  assert.equal(await exec("cat", [], "some text"), "some text");
  assert.equal(await exec("sh", ["-c", "echo $0 $1; cat", "a", "b c"]), "a b c\n");
  assert.equal(await exec("cat", [], Readable.from(["one", "two"])), "onetwo");
  assert.equal(await exec("head", ["-c1"], "x".repeat(4 << 20)), "x");
  assert.equal(await tryExec("echo", ["yes"]), "yes\n");
});

for (const { script, want } of [
  { script: "echo why >&2; echo out; exit 3", want: "sh -c echo why >&2; echo out; exit 3: why" },
  { script: "exit 3", want: "sh -c exit 3: ended with exit code 3" },
  { script: "kill -KILL $$", want: "sh -c kill -KILL $$: ended with SIGKILL" },
])
  test(`a program that fails is a failure with its own words, else its end: ${script}`, async () => {
    await assert.rejects(exec("sh", ["-c", script]), (err) => err instanceof Failure && err.message === want);
    assert.equal(await tryExec("sh", ["-c", script]), undefined);
  });

test("an input that cannot be read is the reason, rather than what the program says about it", async () => {
  const input = new Readable({ read: () => {} });
  const ended = exec("sh", ["-c", "cat >/dev/null; echo short >&2; exit 1"], input);
  input.destroy(new Error("cut off"));
  await assert.rejects(ended, { message: "cannot read the input of sh: cut off" });
  await assert.rejects(exec("/no/such/program", []), /^Error: \/no\/such\/program : .*ENOENT/);
});

test("a program is an executable file on the PATH or in a folder of system programs", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-path-"));
  const path = process.env["PATH"];
  t.after(() => {
    process.env["PATH"] = path;
    rmSync(folder, { recursive: true, force: true });
  });
  for (const name of ["a/tool", "b/tool", "c/tool"]) mkdirSync(join(folder, name, ".."), { recursive: true });
  mkdirSync(join(folder, "a", "tool"));
  writeFileSync(join(folder, "b", "tool"), "");
  writeFileSync(join(folder, "c", "tool"), "", { mode: 0o755 });
  process.env["PATH"] = ["a", "b", "c", "none"].map((name) => join(folder, name)).join(":");
  assert.equal(which("tool"), join(folder, "c", "tool"));
  assert.equal(need("tool", "package"), join(folder, "c", "tool"));
  assert.throws(() => need("no-such-tool", "some-package"), {
    message: "no-such-tool is missing; install Debian's package some-package",
  });
  assert.match(which("ldconfig") ?? "", /^\/(?:usr\/)?sbin\/ldconfig$/, "which a user's PATH has not");
});

/** Source of a process that runs a program by `passThrough`; the program prints a line for each SIGINT, and ends on any input. */
const counter = `
  const { passThrough } = await import(${JSON.stringify(join(import.meta.dirname, "commands.ts"))});
  const child = "process.on('SIGINT', () => console.log('interrupted')); process.stdin.on('data', () => process.exit(0)); " +
    "console.log('ready ' + process.ppid)";
  const ended = passThrough(process.execPath, ["-e", child]);
  process.on("SIGINT", () => console.log("passed")); // after the listener of passThrough
  process.exitCode = await ended;
`;
const interrupts = 5;

/** Interrupts the process of `counter` five times, each time after the last SIGINT has arrived. @returns the program's SIGINTs */
async function countInterrupts(
  command: string,
  args: readonly string[],
  interrupt: (write: (text: string) => void, pid: number) => void,
): Promise<number> {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, COUNTER: counter } });
  let output = "";
  let sent = 0;
  const count = (word: string): number => output.split(word).length - 1;
  const write = (text: string): void => void child.stdin.write(text);
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk;
    const pid = /ready (\d+)\s/.exec(output)?.[1];
    if (pid === undefined || count("passed") < sent || count("interrupted") < sent) return;
    if (sent === interrupts) write("end\n");
    else interrupt(write, Number(pid));
    sent++;
  });
  await once(child, "close");
  return count("interrupted");
}

const node = [process.execPath, "--input-type=module", "-C", "cox-source", "-e"];

test("Ctrl-C in a terminal reaches the program once: daemons exit at once on the second signal", async () => {
  const inTerminal = ["--quiet", "--flush", "--return", "--command", `${node.map((word) => `'${word}'`).join(" ")} "$COUNTER"`];
  assert.equal(await countInterrupts("script", [...inTerminal, "/dev/null"], (write) => write("\x03")), interrupts);
});

test("a SIGINT from elsewhere is forwarded", async () => {
  const [program = "", ...args] = node;
  assert.equal(await countInterrupts(program, [...args, counter], (_, pid) => void process.kill(pid, "SIGINT")), interrupts);
});
