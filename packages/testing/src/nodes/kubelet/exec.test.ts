import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { runExec } from "./exec.ts";
import { type CommandStreams, Terminal } from "./remote-command.ts";
import type { Exec } from "./rules.ts";
import { usualAnswers } from "./usual-answers.ts";

const pod: Pod = {
  metadata: { name: "web", namespace: "default" },
  spec: {
    nodeName: "node-1",
    containers: [
      { name: "main", image: "img", env: [{ name: "A", value: "1" }, { name: "B" }] },
      { name: "side", image: "other" },
    ],
    initContainers: [{ name: "init", image: "setup" }],
  },
};

interface Run {
  readonly command?: readonly string[];
  readonly container?: string;
  readonly tty?: boolean;
  readonly input?: string;
  readonly signal?: AbortSignal;
  readonly of?: Pod;
}

/** Runs a command. @returns what the client gets: output as `stdout: …`, then the status and the message for older clients */
async function ran(exec: Exec, { command = [], container = "main", tty = false, input, signal, of = pod }: Run = {}) {
  const output: string[] = [];
  let end: { status: object; message: string } | undefined;
  const stdin = new PassThrough();
  stdin.end(input);
  const streams: CommandStreams = {
    stdin,
    terminal: new Terminal(),
    async write(to, chunk) {
      output.push(`${to}: ${Buffer.from(chunk)}`);
    },
    async finish(status, message) {
      end = { status, message };
    },
  };
  await runExec(exec, { pod: of, container, command, tty }, streams, signal ?? new AbortController().signal);
  return { output, ...end, streams };
}

const success = { metadata: {}, status: "Success" };
const failure = (exitCode: number) => ({
  metadata: {},
  status: "Failure",
  reason: "NonZeroExitCode",
  message: `command terminated with non-zero exit code: exit status ${exitCode}`,
  details: { causes: [{ reason: "ExitCode", message: String(exitCode) }] },
});

for (const [what, result, output, status] of [
  ["nothing", undefined, [], success],
  ["a text", "out", ["stdout: out"], success],
  ["the exit code 0", 0, [], success],
  ["an exit code", 7, [], failure(7)],
  ["both outputs and a code", { stdout: "o", stderr: "e", exitCode: 2 }, ["stdout: o", "stderr: e"], failure(2)],
  ["an error output alone", { stderr: "e" }, ["stderr: e"], success],
] as const) {
  test(`a command that returns ${what} is told by its output and status`, async () => {
    const run = await ran(() => result);
    assert.deepEqual([run.output, run.status], [output, status]);
    assert.equal(run.message, "message" in status ? status.message : "");
  });
}

test("a command on a terminal has one output; it reads its input, and hears of the terminal's size", async () => {
  const sizes: unknown[] = [];
  const exec: Exec = async ({ stdin, stdout, stderr, onResize, container, command, tty }) => {
    onResize((size) => sizes.push(size));
    await stdout(`${container} ${command.join(" ")} ${tty}`);
    await stderr(Buffer.from("err"));
    return Buffer.concat(await stdin.toArray()).toString();
  };
  const run = await ran(exec, { tty: true, command: ["a", "b"], input: "typed" });
  assert.deepEqual(run.output, ["stdout: main a b true", "stdout: err", "stdout: typed"]);
  run.streams.terminal.resize(Buffer.from('{"Width":80,"Height":24}'));
  assert.deepEqual(sizes, [{ width: 80, height: 24 }]);
});

test("what a command throws is an error of the runtime; so is that its client is gone", async () => {
  const failed = (message: string) => ({
    status: { metadata: {}, status: "Failure", reason: "InternalError", message, code: 500 },
    message,
  });
  const thrown = async (exec: Exec, signal?: AbortSignal) => {
    const { status, message } = await ran(exec, signal === undefined ? {} : { signal });
    return { status, message };
  };
  const reject = (err: unknown) => (): never => {
    throw err;
  };
  assert.deepEqual(await thrown(reject(new Error("no such file"))), failed("error executing command: no such file"));
  assert.deepEqual(await thrown(reject("text")), failed("error executing command: text"));
  const gone = new AbortController();
  const never = thrown(() => new Promise(() => {}), gone.signal);
  gone.abort(new Error("the client is gone"));
  assert.deepEqual(await never, failed("error executing command: the client is gone"));
  assert.deepEqual(
    await thrown(() => new Promise(() => {}), AbortSignal.abort(new Error("gone before"))),
    failed("error executing command: gone before"),
  );
});

for (const [command, output, exitCode, more] of [
  [["echo", "a", "b"], ["stdout: a b\n"], 0],
  [["/bin/echo"], ["stdout: \n"], 0],
  [["hostname"], ["stdout: web\n"], 0],
  [["hostname"], ["stdout: own\n"], 0, { of: { ...pod, spec: { ...pod.spec, hostname: "own" } } }],
  [["env"], ["stdout: A=1\nB=\n"], 0],
  [["env"], [], 0, { container: "side" }],
  [["cat"], ["stdout: typed"], 0, { input: "typed" }],
  [["cat", "/etc/x"], ["stderr: cat: /etc/x: fake nodes have no files\n"], 1, { input: "typed" }],
  [["true"], [], 0],
  [["false"], [], 1],
  [["/bin/sh", "-c", "x"], ["stderr: /bin/sh: fake nodes run no programs\n"], 127],
] as [string[], string[], number, Run?][]) {
  test(`a fake container answers ${command.join(" ")}${more === undefined ? "" : `, ${Object.keys(more)}`}`, async () => {
    const run = await ran(usualAnswers.exec, { command, ...more });
    assert.deepEqual([run.output, run.status], [output, exitCode === 0 ? success : failure(exitCode)]);
  });
}

test("the log of a fake container names its node and image, that of an init container its own", async () => {
  const { logs } = usualAnswers;
  assert.ok(typeof logs === "function");
  const of = (container: string) =>
    logs({ pod, container, previous: false, follow: false, signal: new AbortController().signal });
  assert.deepEqual(of("side"), ["container side on the fake node node-1: nothing of other runs"]);
  assert.deepEqual(of("init"), ["container init on the fake node node-1: nothing of setup runs"]);
});

test("a listener to the terminal's size gets the last one that was sent before, then each; what is no size is ignored", () => {
  const terminal = new Terminal();
  const sizes: unknown[] = [];
  for (const message of ['{"Width":1,"Height":2}', '{"Width":3,"Height":4}', "{"]) terminal.resize(Buffer.from(message));
  terminal.listen((size) => sizes.push(size));
  terminal.resize(Buffer.from('{"Width":5,"Height":6}'));
  assert.deepEqual(sizes, [
    { width: 3, height: 4 },
    { width: 5, height: 6 },
  ]);
});
