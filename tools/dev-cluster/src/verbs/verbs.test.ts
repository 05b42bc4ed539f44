/** The verbs in this process, on clusters that consist of files: what they print, their exit codes, and what they leave. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { nodeFlags } from "@coxswain/apimachinery/testing/node-flags";
import { Command } from "commander";
import { writeRecord } from "../cluster-record.ts";
import { Failure } from "../failure.ts";
import { withClusterLock } from "../lock.ts";
import { startTimeOf } from "../process-identity.ts";
import { newProgram } from "../program.ts";
import { type Choices, defaultChoices, newSettings } from "../settings.ts";
import { writeState } from "../supervisor-state.ts";
import { durationArgument, numberArgument, waitOption } from "./command.ts";

const choices: Choices = { ...defaultChoices(), withNode: false };
/** Has no API server and no supervisor; that of the port 1 is refused. */
const closed: Choices = { ...choices, ports: { ...choices.ports, apiserver: 1 } };

interface Clone {
  readonly root: string;
  /** The default cluster's. */
  readonly state: string;
  /** Runs a command line of `./cox`. @returns its exit code and what it printed */
  run(...args: string[]): Promise<{ code: number; out: string; err: string }>;
}

/** A clone with its own registry, and a `kubectl` on the PATH that prints its environment and arguments and ends with 5. */
function newClone(t: TestContext, variables: NodeJS.ProcessEnv = {}): Clone {
  const folder = mkdtempSync(join(tmpdir(), "cox-verbs-"));
  const root = join(folder, "clone");
  for (const name of ["clone/.cox", "bin", "registry"]) mkdirSync(join(folder, name), { recursive: true });
  const script = '#!/bin/sh\n[ "$1" != version ] || { echo \'{"clientVersion":{"major":"1","minor":"23"}}\'; exit; }\n';
  const output = join(folder, "output");
  const print = `echo "$KUBECONFIG|$KUBECTL|\${PATH%%:*}|$*" > ${output}; exit 5\n`;
  writeFileSync(join(folder, "bin", "kubectl"), script + print, { mode: 0o755 });
  const before = { ...process.env };
  Object.assign(process.env, {
    PATH: `${join(folder, "bin")}:${before["PATH"]}`,
    COX_REGISTRY: join(folder, "registry"),
    ...variables,
  });
  delete process.env["COX_STATE"];
  t.after(() => {
    process.env = before;
    rmSync(folder, { recursive: true, force: true });
  });
  const run: Clone["run"] = async (...args) => {
    const texts = { out: "", err: "" };
    const exitCode = process.exitCode;
    process.exitCode = undefined;
    const own = process.stdout.write.bind(process.stdout);
    const write = (name: "out" | "err") => (text: string | Uint8Array) => {
      if (typeof text !== "string") return own(text); // what the test runner reports
      texts[name] += text;
      return true;
    };
    const mocks = [
      t.mock.method(console, "log", (...words: unknown[]) => write("out")(`${words.join(" ")}\n`)),
      t.mock.method(process.stdout, "write", write("out")),
      t.mock.method(process.stderr, "write", write("err")),
    ];
    let failure: unknown;
    try {
      const program: Command = await newProgram(root, args[0]);
      await program.parseAsync([...args], { from: "user" });
    } catch (err) {
      failure = err;
    } finally {
      for (const mock of mocks) mock.mock.restore();
    }
    const code = process.exitCode;
    process.exitCode = exitCode;
    if (failure instanceof Failure) return { code: failure.exitCode, out: texts.out, err: `${texts.err}${failure.message}` };
    if (failure !== undefined) throw failure;
    if (existsSync(output)) texts.out += readFileSync(output, "utf8");
    rmSync(output, { force: true });
    return { code: Number(code ?? 0), ...texts };
  };
  return { root, state: join(root, ".cox"), run };
}

const running = (names: readonly string[]) => ({
  supervisor: { pid: 1, startTime: "1", since: 0, version: "v1" },
  processes: Object.fromEntries(
    names.map((name) => [
      name,
      {
        spec: { name, command: name, args: [] },
        state: {
          phase: "running",
          since: 0,
          pid: process.pid,
          startTime: startTimeOf(process.pid)!,
          restarts: 0,
          quickEnds: 0,
        } as const,
      },
    ]),
  ),
});

/** A cluster of which processes run, as far as its files say. */
function addCluster(state: string, names: readonly string[] = [], with_ = closed): void {
  mkdirSync(join(state, "run"), { recursive: true });
  writeRecord(state, { requested: {}, choices: with_ });
  writeState({ state }, running(names));
}

test("status has the exit code 1 while something does not run, and prints the table", async (t) => {
  const { state, run } = newClone(t);
  addCluster(state, ["etcd"]);
  const { code, out } = await run("status");
  assert.equal(code, 1);
  assert.match(out, /^NAME +STATE .*\nsupervisor +not running .*\netcd +running, pid \d+ +no /);
});

test("list shows how much of each cluster runs, those of this clone once and first", async (t) => {
  const { root, state, run } = newClone(t);
  assert.equal((await run("list")).out, "no cluster was started here; start one with ./cox up\n");
  addCluster(state, ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]);
  addCluster(join(state, "clusters", "c"), ["etcd"]);
  addCluster(join(state, "clusters", "b"));
  const other = join(root, "..", "other", ".cox");
  addCluster(other, [], { ...choices, podCidr: "10.99.0.0/16" });
  const register = (name: string, entry: object): void =>
    writeFileSync(join(process.env["COX_REGISTRY"]!, name), JSON.stringify({ ...choices, ...entry }));
  register("1.json", { id: "1", name: "else", root: "/elsewhere", state: other, podCidr: "10.99.0.0/16" });
  register("2.json", { id: "2", name: "stale", root, state, podCidr: "10.98.0.0/16" });
  register("3.json", { id: "3", name: "gone", root, state: join(root, "gone") });
  const lines = (await run("list")).out
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ {2,}/));
  assert.deepEqual(lines, [
    ["NAME", "STATE", "API SERVER", "PODS", "SERVICES", "FOLDER"],
    ["default", "running", "https://127.0.0.1:1", "10.244.0.0/16", "10.96.0.0/16", state],
    ["b", "stopped", "https://127.0.0.1:1", "10.244.0.0/16", "10.96.0.0/16", join(state, "clusters", "b")],
    ["c", "1 of 4 run", "https://127.0.0.1:1", "10.244.0.0/16", "10.96.0.0/16", join(state, "clusters", "c")],
    ["else", "stopped", "https://127.0.0.1:6443", "10.99.0.0/16", "10.96.0.0/16", other],
  ]);
});

const admin = {
  apiVersion: "v1",
  kind: "Config",
  clusters: [{ name: "x", cluster: { server: "https://127.0.0.1:1" } }],
  users: [{ name: "x", user: { token: "t" } }],
  contexts: [{ name: "x", context: { cluster: "x", user: "x" } }],
  "current-context": "x",
};

test("kubeconfig prints the administrator's, and merges it only when requested", async (t) => {
  const file = join(mkdtempSync(join(tmpdir(), "cox-config-")), "config");
  t.after(() => rmSync(join(file, ".."), { recursive: true, force: true }));
  const { state, run } = newClone(t, { KUBECONFIG: file });
  addCluster(join(state, "clusters", "b"));
  assert.match(
    (await run("kubeconfig", "--name", "b")).err,
    /^cannot read the administrator's kubeconfig \(ENOENT.*\); make it with .\/cox up --name b$/,
  );
  writeFileSync(join(state, "clusters", "b", "admin.conf"), JSON.stringify(admin));
  const printed = JSON.parse((await run("kubeconfig", "--name", "b")).out);
  assert.deepEqual([printed.contexts[0].name, printed.clusters[0].cluster.server], ["cox-b", "https://127.0.0.1:1"]);
  assert.equal(JSON.parse((await run("kubeconfig", "--name", "b", "--context", "mine")).out).contexts[0].name, "mine");
  assert.equal(existsSync(file), false);

  const use = (name: string): string => `use it with: kubectl --context ${name} get nodes\n`;
  assert.equal((await run("kubeconfig", "--name", "b", "--merge")).out, `context cox-b is in ${file}\n${use("cox-b")}`);
  assert.equal((await run("kubeconfig", "--name", "b", "--merge")).out, `context cox-b was in ${file} already\n${use("cox-b")}`);
  const { out } = await run("kubeconfig", "--name", "b", "--merge", "--context", "mine");
  const [, backup = ""] = new RegExp(`^context mine is in ${file}; what it was is in (\\S+)\\n${use("mine")}$`).exec(out) ?? [];
  assert.ok(readFileSync(backup, "utf8").includes("cox-b") && !readFileSync(backup, "utf8").includes("mine"), out);
});

test("logs are printed by name, with the process before each line where there are several; the audit log only by its name", async (t) => {
  const { state, run } = newClone(t);
  addCluster(state);
  assert.match((await run("logs")).err, /^there is no log of etcd, kube-apiserver, .*: it was not started$/);
  mkdirSync(join(state, "logs"));
  for (const [name, text] of [
    ["etcd", "I0102 03:04:05.000000 1 x] one\nI0102 03:04:07.000000 1 x] three\n"],
    ["kube-scheduler", "I0102 03:04:06.000000 1 x] two\n"],
    ["audit", "{}\n"],
  ] as const)
    writeFileSync(join(state, "logs", `${name}.log`), text);
  const words = async (...args: string[]) =>
    (await run("logs", ...args)).out.split("\n").map((line) => line.replace(/I0102 \S+ 1 x\] /, ""));
  assert.deepEqual(await words(), ["etcd           | one", "kube-scheduler | two", "etcd           | three", ""]);
  assert.deepEqual(await words("etcd", "etcd"), ["one", "three", ""]);
  assert.deepEqual(await words("--prefix", "etcd", "--tail", "1"), ["etcd | three", ""]);
  assert.deepEqual(await words("audit"), ["{}", ""]);
  const unknown = await run("logs", "etcd", "kubelt");
  assert.equal(unknown.code, 2);
  assert.match(unknown.err, /^there is no process kubelt; one of etcd, kube-apiserver, .*audit$/);
  const now = new Date();
  const stamp = (at: Date) => {
    const two = (value: number): string => String(value).padStart(2, "0");
    return `I${two(at.getMonth() + 1)}${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.000000 1 x]`;
  };
  const lines = [`${stamp(new Date(now.getTime() - 7_200_000))} old`, `${stamp(new Date(now.getTime() - 60_000))} new`];
  writeFileSync(join(state, "logs", "etcd.log"), `${lines.join("\n")}\n`);
  assert.equal((await run("logs", "--since", "1h", "etcd")).out, `${lines[1]}\n`);
});

test("load refuses any archive that is missing, and a cluster without containerd", async (t) => {
  const { root, state, run } = newClone(t);
  addCluster(state);
  const archive = join(root, "a.tar");
  writeFileSync(archive, "");
  assert.equal((await run("load", archive, "/no/b.tar")).err, "there is no file /no/b.tar");
  assert.deepEqual(await run("load", archive), {
    code: 1,
    out: "",
    err: "this cluster has no node, and no containerd to load images into",
  });
});

test("run hands the daemon its flags, and has its exit code", async (t) => {
  const { root, run } = newClone(t);
  const dist = join(root, "packages", "scheduler", "dist");
  mkdirSync(dist, { recursive: true });
  writeFileSync(
    join(dist, "main.js"),
    `require("fs").writeFileSync(${JSON.stringify(join(dist, "args"))}, process.argv.slice(2).join()); process.exit(4);`,
  );
  assert.equal((await run("run", "kube-scheduler", "--name", "x", "--help", "y")).code, 4);
  assert.equal(readFileSync(join(dist, "args"), "utf8"), "--name,x,--help,y");
});

test("what needs a cluster says how to start it, and names the others, but not itself", async (t) => {
  const { state, run } = newClone(t);
  for (const name of ["b", "c"]) addCluster(join(state, "clusters", name));
  for (const [args, message] of [
    [["status"], "no cluster was started here; start one with ./cox up, or add --name for one of b, c"],
    [["logs", "--name", "d"], "no cluster d was started here; start one with ./cox up --name d, or add --name for one of b, c"],
    [
      ["kubectl", "--name", "b", "get", "pods"],
      "no cluster b is running here; start one with ./cox up --name b, or add --name for one of c",
    ],
  ] as const)
    assert.deepEqual(await run(...args), { code: 1, out: "", err: message });
});

test("kubectl is the user's, with the cluster's kubeconfig and our plugin, and has its exit code", async (t) => {
  const { root, state, run } = newClone(t, { KUBECONFIG: "/production" });
  const bin = join(root, "tools", "deploy", "bin");
  const program = join(root, "..", "bin", "kubectl");
  // Without a cluster: these need none.
  for (const words of [
    ["plugin", "list"],
    ["completion", "bash"],
    ["version"].slice(1),
    ["get", "pods", "--kubeconfig", "x"],
    ["get", "--kubeconfig=x"],
    ["get", "-h"],
  ]) {
    const { code, out } = await run("kubectl", ...words);
    assert.deepEqual([code, out], [5, `/production|${program}|${bin}|${words.join(" ")}\n`], words.join(" "));
  }
  for (const words of [
    ["get", "pods"],
    ["exec", "pod", "--", "x", "--help"],
    ["get", "--kubeconfigs"],
  ])
    assert.match((await run("kubectl", ...words)).err, /^no cluster is running here; start one with .\/cox up$/, words.join(" "));
  addCluster(state, ["kube-apiserver"]);
  writeFileSync(join(state, "admin.conf"), "{}");
  const { code, out } = await run("kubectl", "get", "pods", "--name", "x");
  assert.deepEqual([code, out], [5, `${join(state, "admin.conf")}|${program}|${bin}|get pods --name x\n`]);
});

test("down keeps the cluster's files and its place in the list, and --purge removes both and the empty folders", async (t) => {
  const { state, run } = newClone(t);
  const b = join(state, "clusters", "b");
  addCluster(b);
  const { id } = newSettings("", "b", b, choices);
  const entry = join(process.env["COX_REGISTRY"]!, `${id}.json`);
  writeFileSync(entry, "{}");
  assert.equal((await run("down", "--name", "b")).code, 0);
  assert.ok(existsSync(entry) && existsSync(join(b, "cluster.json")) && existsSync(join(b, "lock")));
  writeFileSync(join(b, "cluster.json"), "{ damaged");
  const { code, err } = await run("down", "--name", "b", "--purge");
  assert.equal(code, 0);
  assert.match(err, /^cox: \S+cluster\.json is damaged; /);
  assert.equal(existsSync(entry), false);
  assert.deepEqual(readdirSync(state), []);
});

test("an up that fails before it has decided leaves nothing", async (t) => {
  const { state, run } = newClone(t);
  const { code, err } = await run("up", "--name", "b", "--no-node", "--audit-policy-file", "none.yaml");
  assert.equal(code, 1);
  assert.equal(err, `--audit-policy-file: there is no file ${join(process.cwd(), "none.yaml")}`);
  assert.deepEqual([readdirSync(state), readdirSync(process.env["COX_REGISTRY"]!).filter((name) => name !== "lock")], [[], []]);
});

test("up says which folder it cannot use, and finds a policy of a variable from the clone", async (t) => {
  const { root, state, run } = newClone(t, { COX_AUDIT_POLICY: "policy.yaml" });
  writeFileSync(join(root, "policy.yaml"), "");
  assert.equal((await run("up", "--no-node")).err.split("\n").at(-1), "the daemons are not built: run ./cox build");
  rmSync(state, { recursive: true });
  writeFileSync(state, "");
  const { code, err } = await run("up", "--no-node");
  assert.equal(code, 1);
  assert.match(err, /^cannot write to \S+\/\.cox: E(?:NOTDIR|EXIST): .*$/);
});

test("up keeps what was requested, by flags before variables, and registers the cluster; its own ports do not count as taken", async (t) => {
  const { root, state, run } = newClone(t, { COX_NODE_NAME: "n2", COX_POD_NETWORK: "10.213" });
  const policy = join(root, "policy.yaml");
  writeFileSync(policy, "");
  const built = "the daemons are not built: run ./cox build";
  assert.equal(
    (await run("up", "--no-node", "--node-name", "n1", "--audit-policy-file", policy, "--kubelet-arg", "v=1")).err
      .split("\n")
      .at(-1),
    built,
  );
  const record = () => JSON.parse(readFileSync(join(state, "cluster.json"), "utf8"));
  const first = record();
  const extraArgs = { kubelet: ["--v=1"] };
  assert.deepEqual(first.requested, {
    nodeName: "n1",
    podCidr: "10.213.0.0/16",
    withNode: false,
    auditPolicy: policy,
    ports: {},
    extraArgs,
  });
  const { id } = newSettings(root, "default", state, choices);
  const entry = JSON.parse(readFileSync(join(process.env["COX_REGISTRY"]!, `${id}.json`), "utf8"));
  assert.deepEqual([entry.root, entry.name, entry.podCidr, entry.ports], [root, "default", "10.213.0.0/16", first.choices.ports]);
  assert.equal((await run("up")).err, built);
  assert.deepEqual(record().choices, { ...first.choices, nodeName: "n2" });
  mkdirSync(join(state, "etcd"));
  assert.match((await run("up", "--node-name", "n3")).err, /^--node-name: the cluster's data were created with n2, not n3; /);
});

for (const trace of ["cluster.json", "run", "etcd", "pki", "containerd", "the folder of sockets"])
  test(`down finds a cluster of which only ${trace} is left`, async (t) => {
    const { root, state, run } = newClone(t);
    assert.equal((await run("down")).out, "no cluster was started here; nothing to do\n");
    const { run: sockets } = newSettings(root, "default", state, defaultChoices());
    if (trace === "cluster.json") writeRecord(state, { requested: {}, choices });
    else mkdirSync(trace === "the folder of sockets" ? sockets : join(state, trace), { recursive: true });
    t.after(() => rmSync(sockets, { recursive: true, force: true }));
    const { code, out } = await run("down");
    assert.equal(code, 0);
    assert.doesNotMatch(out, /nothing to do/);
    assert.equal(existsSync(sockets), false);
  });

test("down waits for another command only as long as it may", async (t) => {
  const { state, run } = newClone(t);
  addCluster(state);
  await withClusterLock({ state, name: "default" }, "up", async () => {
    const { code, err } = await run("down", "--wait", "0");
    assert.equal(code, 1);
    assert.match(err, /^cluster default is locked by \.\/cox up \(pid \d+, since \S+\); try again when that has ended$/);
  });
});

test("load prints the name of each image, and refuses an archive without one", {
  skip: process.getuid?.() !== 0 && "a cluster has containerd as root only",
}, async (t) => {
  const { root, state, run } = newClone(t);
  addCluster(state, ["containerd"], { ...choices, withNode: true });
  const archive = join(root, "a.tar");
  writeFileSync(archive, Buffer.alloc(1024));
  const ctr = join(root, "..", "bin", "ctr");
  const answers = (script: string): void => writeFileSync(ctr, `#!/bin/sh\ncat >/dev/null\n${script}\n`, { mode: 0o755 });
  answers(
    `echo "$*" > ${join(root, "args")}; printf 'unpacking a.test/web:1 (sha256:0)...done\\nunpacking a.test/db:2 (sha256:1)...done\\n'`,
  );
  assert.deepEqual(await run("load", archive), { code: 0, out: "a.test/web:1\na.test/db:2\n", err: "" });
  const { run: sockets } = newSettings(root, "default", state, choices);
  assert.equal(
    readFileSync(join(root, "args"), "utf8"),
    `--address ${sockets}/containerd.sock --namespace k8s.io images import -\n`,
  );
  answers("echo done");
  assert.equal((await run("load", archive)).err, `${archive} contains no named image; save it by its name: docker save NAME:TAG`);
  answers("echo 'ctr: no such thing' >&2; exit 1");
  assert.equal((await run("load", archive)).err, `cannot load ${archive}: no such thing`);
});

test("logs -f goes on with what is written, also to a log that is not there yet, and ends when nobody reads it", async (t) => {
  const { state } = newClone(t);
  addCluster(state);
  mkdirSync(join(state, "logs"));
  const log = (name: string, text: string): void => appendFileSync(join(state, "logs", `${name}.log`), `${text}\n`);
  log("etcd", "one");
  const main = join(import.meta.dirname, "..", "main.ts");
  const child = spawn(process.execPath, [...nodeFlags, main, "logs", "-f", "etcd", "kube-scheduler"], {
    env: { ...process.env, COX_STATE: state },
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk));
  const shown = async (text: string): Promise<void> => {
    while (!output.includes(text)) await once(child.stdout, "data");
  };
  await shown("one\n");
  log("etcd", "two");
  await shown("two\n");
  log("kube-scheduler", "three");
  await shown("three\n");
  assert.equal(output, "etcd           | one\netcd           | two\nkube-scheduler | three\n");
  const ended = once(child, "exit");
  child.stdout.destroy();
  log("etcd", "four");
  assert.deepEqual(await ended, [0, null]);
});

test("doctor has the exit code 2 when the API server does not answer", async (t) => {
  const { state, run } = newClone(t);
  addCluster(state);
  writeFileSync(join(state, "admin.conf"), JSON.stringify(admin));
  assert.equal((await run("doctor")).code, 2);
});

for (const [text, want] of [
  ["0", 0],
  ["0s", 0],
  ["1h", 3_600_000],
  ["-1s", undefined],
  ["3", undefined],
] as const)
  test(`a time of ${text} is ${want === undefined ? "refused" : `${want} ms`}`, () => {
    if (want === undefined) assert.throws(() => durationArgument(text), /Expected a duration such as 30s/);
    else assert.equal(durationArgument(text), want);
  });

for (const [text, want] of [
  ["0", 0],
  ["9".repeat(15), 999_999_999_999_999],
  ["9".repeat(16), undefined],
  ["-1", undefined],
  ["1.5", undefined],
  ["", undefined],
] as const)
  test(`a number of ${JSON.stringify(text)} is ${want === undefined ? "refused" : "accepted"}`, () => {
    if (want === undefined) assert.throws(() => numberArgument(text), /Expected a whole number/);
    else assert.equal(numberArgument(text), want);
  });

test("up and down wait ten minutes for another command unless told otherwise", () => {
  const command = new Command().addOption(waitOption());
  assert.equal(command.parse([], { from: "user" }).opts()["wait"], 600_000);
  assert.equal(command.parse(["--wait", "0"], { from: "user" }).opts()["wait"], 0);
});
