import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { nodeFlags } from "@coxswain/apimachinery/testing/node-flags";
import { Failure, Interrupted, UsageFailure } from "./failure.ts";
import { helpFile, helpTexts } from "./help-files.ts";
import { explain, newProgram, runProgram } from "./program.ts";
import { requestedByVariables, withExtraArgs } from "./settings.ts";

const root = join(import.meta.dirname, "..", "..", "..");

for (const [verb, text] of await helpTexts(root)) {
  test(`the help file of ${verb} is what the verb prints (node -C cox-source tools/dev-cluster/src/help-files.ts writes it)`, () =>
    assert.equal(readFileSync(helpFile(root, verb), "utf8"), text));
}

test("each verb of ./cox has help, with examples, and is in the usage", () => {
  const usage = readFileSync(join(root, "cox"), "utf8");
  for (const file of readdirSync(join(root, "tools/dev-cluster/help"))) {
    assert.match(
      readFileSync(join(root, "tools/dev-cluster/help", file), "utf8"),
      /^Usage: .\/cox [\s\S]*--help[\s\S]*\nExamples:\n {2}/,
      file,
    );
    assert.match(usage, new RegExp(`^ {2}${basename(file, ".txt")} `, "m"));
  }
});

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Names of the entries that the command left in the state folder. */
  readonly left: string[];
}

/** Runs a command in this process, with an empty state folder; for commands that start no program with this one's output. */
async function run(t: TestContext, ...args: string[]): Promise<Ended> {
  const state = mkdtempSync(join(tmpdir(), "cox-"));
  const before = { env: process.env, exitCode: process.exitCode };
  process.env = { ...before.env, COX_STATE: state };
  process.exitCode = undefined;
  t.after(() => rmSync(state, { recursive: true, force: true }));
  const texts = { stdout: "", stderr: "" };
  const own = process.stdout.write.bind(process.stdout);
  const write = (name: "stdout" | "stderr") => (text: string | Uint8Array) => {
    if (typeof text !== "string") return own(text); // what the test runner reports
    texts[name] += text;
    return true;
  };
  const mocks = [
    t.mock.method(console, "log", (text: string) => write("stdout")(`${text}\n`)),
    t.mock.method(process.stdout, "write", write("stdout")),
    t.mock.method(process.stderr, "write", write("stderr")),
  ];
  try {
    await runProgram(root, args);
    return { code: Number(process.exitCode ?? 0), ...texts, left: readdirSync(state) };
  } finally {
    for (const mock of mocks) mock.mock.restore();
    Object.assign(process, before);
  }
}

/** Runs a command as a process of its own, with an empty state folder. */
async function runWith(variables: NodeJS.ProcessEnv, t: TestContext, ...args: string[]): Promise<Ended> {
  const state = mkdtempSync(join(tmpdir(), "cox-"));
  t.after(() => rmSync(state, { recursive: true, force: true }));
  const program = [...nodeFlags, join(root, "tools/dev-cluster/src/main.ts"), ...args];
  const env = { ...process.env, COX_STATE: state, ...variables };
  const output = await promisify(execFile)(process.execPath, program, { env }).catch(
    (err: { code: number; stdout: string; stderr: string }) => err,
  );
  return { code: "code" in output ? output.code : 0, stdout: output.stdout, stderr: output.stderr, left: readdirSync(state) };
}

for (const { args, message } of [
  { args: ["down", "--purg"], message: /^cox: unknown option '--purg' \(Did you mean --purge\?\); see .\/cox down --help\n$/ },
  { args: ["down", "b"], message: /^cox: too many arguments for 'down'.*; see .\/cox down --help\n$/ },
  { args: ["up", "--fake-nodes"], message: /^cox: option '--fake-nodes <n>' argument missing; see .\/cox up --help\n$/ },
  ...["1001", "2.5", "many"].map((count) => ({
    args: ["up", "--fake-nodes", count],
    message:
      /^cox: option '--fake-nodes <n>' argument '\S+' is invalid. Expected a whole number from 0 to 1000; see .\/cox up --help\n$/,
  })),
  {
    args: ["up", "--kubelet-port", "x"],
    message: /^cox: option '--kubelet-port <port>' argument 'x' is invalid. Expected a whole number; see/,
  },
  {
    args: ["up", "--kubelet-arg", "max pods"],
    message: /^cox: option '--kubelet-arg <flag=value>' argument 'max pods' is invalid/,
  },
  { args: ["up", "--name"], message: /^cox: option '--name <name>' argument missing; see .\/cox up --help\n$/ },
  { args: ["up", "--pod-network-cidr", "10.0.0.1/8"], message: /^cox: --pod-network-cidr: "10.0.0.1\/8" is not an IPv4 network/ },
  {
    args: ["down", "--wait", "3"],
    message: /^cox: option '--wait <time>' argument '3' is invalid. Expected a duration such as 30s/,
  },
  { args: ["logs", "--tail", "-1"], message: /^cox: / },
  { args: ["load"], message: /^cox: missing required argument 'archives'; see .\/cox load --help\n$/ },
  { args: ["run", "kube-proxy"], message: /^cox: there is no daemon kube-proxy; one of kube-apiserver, / },
  { args: ["status", "--name", "../x"], message: /^cox: "..\/x" cannot name a cluster: / },
]) {
  test(`${args.join(" ")} is refused with one line and exit code 2, and starts nothing`, async (t) => {
    const { code, stdout, stderr, left } = await run(t, ...args);
    assert.match(stderr, message);
    assert.equal(stderr.trimEnd().split("\n").length, 1);
    assert.deepEqual({ code, stdout, left: left.filter((name) => name !== "lock") }, { code: 2, stdout: "", left: [] });
  });
}

for (const { args, code, message } of [
  { args: ["status"], code: 1, message: /^cox: no cluster was started here; start one with .\/cox up\n$/ },
  {
    args: ["logs", "--name", "b"],
    code: 1,
    message: /^cox: no cluster b was started here; start one with .\/cox up --name b\n$/,
  },
  { args: ["kubectl", "get", "pods"], code: 1, message: /^cox: no cluster is running here; start one with .\/cox up\n$/ },
  {
    args: ["kubectl", "--name", "b", "get", "pods"],
    code: 1,
    message: /^cox: no cluster b is running here; start one with .\/cox up --name b\n$/,
  },
  { args: ["kubeconfig"], code: 1, message: /^cox: no cluster was started here/ },
  { args: ["load", "x.tar"], code: 1, message: /^cox: no cluster was started here/ },
  { args: ["down"], code: 0, message: /^no cluster was started here; nothing to do\n$/ },
  { args: ["down", "--name", "b", "--purge"], code: 0, message: /^no cluster b was started here; nothing to do\n$/ },
]) {
  test(`${args.join(" ")} before any up says that there is no cluster and writes nothing`, async (t) => {
    const outcome = await run(t, ...args);
    assert.match(outcome.stdout + outcome.stderr, message);
    assert.deepEqual([outcome.code, outcome.left], [code, []]);
  });
}

for (const { args, message } of [
  { args: ["kubectl", "get", "pods"], message: "is running here; start one with ./cox up, or add --name for one of b, c" },
  { args: ["status"], message: "was started here; start one with ./cox up, or add --name for one of b, c" },
  {
    args: ["kubectl", "--name", "d", "get", "pods"],
    message: "d is running here; start one with ./cox up --name d, or add --name for one of b, c",
  },
]) {
  test(`${args.join(" ")} names the clone's other clusters when its own is missing`, async (t) => {
    const state = mkdtempSync(join(tmpdir(), "cox-"));
    t.after(() => rmSync(state, { recursive: true, force: true }));
    for (const name of ["c", "b"]) {
      mkdirSync(join(state, "clusters", name), { recursive: true });
      writeFileSync(join(state, "clusters", name, "cluster.json"), "{}");
    }
    const { code, stderr } = await runWith({ COX_STATE: state }, t, ...args);
    assert.deepEqual([code, stderr], [1, `cox: no cluster ${message}\n`]);
  });
}

test("kubectl's own help of a subcommand needs no cluster; a flag of the program that exec runs does not count", async (t) => {
  const bin = mkdtempSync(join(tmpdir(), "bin-"));
  t.after(() => rmSync(bin, { recursive: true, force: true }));
  writeFileSync(join(bin, "kubectl"), '#!/bin/sh\necho "$@"\n', { mode: 0o755 });
  const help = await runWith({ PATH: `${bin}:${process.env["PATH"]}` }, t, "kubectl", "get", "--help");
  assert.deepEqual([help.code, help.stdout], [0, "get --help\n"]);
  for (const flag of ["--help", "--kubeconfig=x"]) {
    const { code, stderr } = await run(t, "kubectl", "exec", "pod", "--", "program", flag);
    assert.match(stderr, /^cox: no cluster is running here; start one with .\/cox up\n$/);
    assert.equal(code, 1);
  }
});

test("a wrong command line of the whole program has the exit code 2", async (t) => {
  const { code, stdout, stderr, left } = await runWith({}, t, "down", "--purg");
  assert.match(stderr, /^cox: unknown option '--purg' /);
  assert.deepEqual({ code, stdout, left }, { code: 2, stdout: "", left: [] });
});

for (const verb of ["up", "down", "status", "kubectl"]) {
  test(`${verb} --help prints and does nothing`, async (t) => {
    const { code, stdout, left } = await run(t, verb, "--help");
    assert.match(stdout, new RegExp(`^Usage: ./cox ${verb} `));
    assert.deepEqual([code, left], [0, []]);
  });
}

test("a flag of the user replaces only the default flag of its name", () =>
  assert.deepEqual(withExtraArgs(["--port=1", "--port-range=2", "--v=1"], ["--port=3", "--new", "--new=x"]), [
    "--port-range=2",
    "--v=1",
    "--port=3",
    "--new",
    "--new=x",
  ]));

test("variables become settings; empty ones do not", () => {
  assert.deepEqual(requestedByVariables({ COX_PORT_APISERVER: "7443", COX_POD_NETWORK: "10.245", COX_NODE_NAME: "" }), {
    podCidr: "10.245.0.0/16",
    ports: { apiserver: 7443 },
  });
  assert.deepEqual(requestedByVariables({ COX_SERVICE_NETWORK: "10.9.0.0/20", COX_ETCD_WITHOUT_SYNC: "1" }), {
    serviceCidr: "10.9.0.0/20",
    etcdWithoutSync: true,
  });
});

const systemError = (code: string): Error => Object.assign(new Error(`${code}: no luck, open '/x'`), { code });
for (const { name, err, text, code } of [
  { name: "a failure", err: new Failure("the reason"), text: /^the reason$/, code: 1 },
  { name: "a wrong command line", err: new UsageFailure("what"), text: /^what$/, code: 2 },
  { name: "Ctrl-C", err: new Interrupted("SIGINT"), text: /^stopped by SIGINT$/, code: 130 },
  {
    name: "a full disk",
    err: systemError("ENOSPC"),
    text: /^no luck, open '\/x'; the disk is full: free some space and try again$/,
    code: 1,
  },
  {
    name: "another user's file",
    err: systemError("EACCES"),
    text: /^no luck, open '\/x'; the file belongs to another user: .*$/,
    code: 1,
  },
  {
    name: "a read-only file system",
    err: systemError("EROFS"),
    text: /^no luck, open '\/x'; the file system is read-only: .*$/,
    code: 1,
  },
  { name: "a fault of ours", err: new TypeError("x is undefined"), text: /TypeError: x is undefined\n +at /, code: 1 },
]) {
  test(`${name} is explained`, () => {
    const explained = explain(err, "up");
    assert.match(explained.text ?? "", text);
    assert.equal(explained.code, code);
  });
}

test("unknown verbs are refused by the program that knows all verbs", async () =>
  assert.deepEqual((await newProgram(root)).commands.map((command) => command.name()).sort(), [
    "certs",
    "doctor",
    "down",
    "kubeconfig",
    "kubectl",
    "list",
    "load",
    "logs",
    "run",
    "status",
    "up",
  ]));
