import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { passThrough } from "./commands.ts";

for (const { script, want } of [
  { script: "exit 3", want: 3 },
  { script: "kill -HUP $$", want: 129 },
  { script: "kill -INT $$", want: 130 },
  { script: "kill -KILL $$", want: 137 },
  { script: "kill -TERM $$", want: 143 },
])
  test(`a program that ends by ${script} has the exit code ${want}`, async () =>
    assert.equal(await passThrough("sh", ["-c", script]), want));

test("signals are forwarded to a program only while it runs", async () => {
  const count = (): number => process.listenerCount("SIGINT") + process.listenerCount("SIGTERM");
  const before = count();
  const ended = passThrough("true", []);
  assert.equal(count(), before + 2);
  await ended;
  assert.equal(count(), before);
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
