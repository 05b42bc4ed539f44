import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { clusterRoleBindings } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { freePort } from "@coxswain/apimachinery/testing/etcd";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { haveEnded, signalAll, startedBySupervisor } from "./cluster-processes.ts";
import { down } from "./down.ts";
import { Failure, type Progress } from "./failure.ts";
import { logFile, runningPid, start } from "./processes.ts";
import { defaultChoices, newSettings, type Settings } from "./settings.ts";
import { ensureSupervisor, supervisorPid } from "./supervisor-client.ts";
import {
  bindKubeletClient,
  endStrays,
  howToUse,
  missingNodes,
  processNames,
  settleAll,
  up,
  versionIn,
  whyNotReady,
} from "./up.ts";

const repository = join(import.meta.dirname, "..", "..", "..");
const settingsWith = (changes: Partial<Settings>, name = "default"): Settings => ({
  ...newSettings("/clone", name, name === "default" ? "/clone/.cox" : `/clone/.cox/clusters/${name}`, defaultChoices(), {}),
  ...changes,
});

const controlPlane = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];
for (const { changes, want } of [
  { changes: { withNode: false, fakeNodes: 0 }, want: ["etcd", ...controlPlane] },
  { changes: { withNode: true, fakeNodes: 0 }, want: ["etcd", "containerd", ...controlPlane, "kubelet", "coxswain-services"] },
  { changes: { withNode: false, fakeNodes: 1 }, want: ["etcd", ...controlPlane, "fake-nodes"] },
])
  test(`the processes with ${JSON.stringify(changes)} are ${want.join(", ")}`, () =>
    assert.deepEqual(processNames(settingsWith(changes)), want));

const usage = (name: string, config: string): string[] => [
  "",
  "The cluster is up. Use it with",
  `  ./cox kubectl${name} get nodes`,
  `  KUBECONFIG=${config} kubectl get pods -A`,
  `${`  ./cox kubectl${name} proxy`.padEnd(27)}  then open http://127.0.0.1:8001/ui/ in a browser`,
  `  ./cox status | logs | down${name}`,
];
const noNode = [
  "",
  "There is no node: running containers needs root (namespaces, cgroups, mounts). Start again as root for one, or with --fake-nodes 1.",
];
for (const { name, settings, want } of [
  { name: "as root", settings: settingsWith({ asRoot: true }), want: usage("", "/clone/.cox/admin.conf") },
  {
    name: "of a named cluster without root",
    settings: settingsWith({ asRoot: false, fakeNodes: 0 }, "b"),
    want: [...usage(" --name b", "/clone/.cox/clusters/b/admin.conf"), ...noNode],
  },
  ...[
    ["/my clone", "'/my clone/admin.conf'"],
    ["/clone's", "'/clone'\\''s/admin.conf'"],
  ].map(([state, config = ""]) => ({
    name: `of one with fake nodes in ${state}, which the shell would take apart`,
    settings: settingsWith({ asRoot: false, fakeNodes: 1, ...(state !== undefined && { state }) }),
    want: usage("", config),
  })),
])
  test(`after up its use is told, ${name}`, () => assert.deepEqual(howToUse(settings).split("\n"), want));

for (const [text, want] of [
  ["etcd Version: 3.4.23\nGit SHA: Not provided\nGo Version: go1.19.8\n", "3.4.23"],
  ["containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+b1\n", "1.6.20~ds1"],
  ["v1.2", undefined],
] as const)
  test(`the version in ${JSON.stringify(text.slice(0, 12))} is ${want}`, () => assert.equal(versionIn(text), want));

const node = (status: "True" | "False" | "Unknown", type = "Ready", message?: string): Node => ({
  metadata: {},
  spec: {},
  status: {
    conditions: [
      { type: "MemoryPressure", status: "True" },
      { type, status, ...(message !== undefined && { message }) },
    ],
  },
});
for (const { name, items, wanted, want } of [
  { name: "all", items: [node("True"), node("True")], wanted: 2, want: undefined },
  { name: "one more than wanted", items: [node("True"), node("True")], wanted: 1, want: undefined },
  { name: "only some", items: [node("True"), node("False"), node("Unknown")], wanted: 2, want: "1 of 2 are" },
  { name: "none", items: [{ metadata: {}, spec: {} }, node("True", "Other")], wanted: 1, want: "0 of 1 are" },
])
  test(`of ${items.length} nodes ${name} are Ready`, () => assert.equal(missingNodes(items, wanted), want));

for (const { given, want } of [
  { given: node("True"), want: undefined },
  { given: node("False", "Ready", "no network"), want: "no network" },
  { given: node("Unknown"), want: "the kubelet has not said so yet" },
  { given: { metadata: {}, spec: {} }, want: "the kubelet has not said so yet" },
])
  test(`a node's state is said: ${want ?? "Ready"}`, () => assert.equal(whyNotReady(given), want));

test("the API server's client may use the kubelet's API and nothing else; a second up finds that already granted", async () => {
  const client = newFakeClient();
  const { signal } = new AbortController();
  await bindKubeletClient(client, signal);
  await bindKubeletClient(client, signal);
  const apiGroup = "rbac.authorization.k8s.io";
  hasFields(client.objects(clusterRoleBindings), [
    {
      metadata: { name: "cox:kubelet-client" },
      roleRef: { apiGroup, kind: "ClusterRole", name: "system:kubelet-api-admin" },
      subjects: [{ apiGroup, kind: "User", name: "kube-apiserver-kubelet-client" }],
    },
  ]);
  client.react("create", "*", () => {
    throw new Error("not now");
  });
  await assert.rejects(bindKubeletClient(client, signal), /not now/);
});

const onlyRuns = 'console.log("runs"); setInterval(() => {}, 1e9);';
const endsAtOnce = 'echo "Error: no etcd today"; exit 1';

/** A clone with other programs in place of the daemons, by default such as only say that they run, and an etcd on the PATH that ends. */
async function newClone(
  t: TestContext,
  daemon: (name: string) => string = () => onlyRuns,
  etcd = endsAtOnce,
): Promise<{ settings: Settings; steps: string[]; progress: Progress }> {
  const folder = mkdtempSync(join(tmpdir(), "cox-up-"));
  const root = join(folder, "clone");
  for (const name of ["apiserver", "controller-manager", "scheduler", "testing"]) {
    const file = join(root, "packages", name, "dist", name === "testing" ? "fake-nodes.js" : "main.js");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, daemon(name));
  }
  symlinkSync(join(repository, "tools"), join(root, "tools"));
  const bin = join(folder, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "etcd"), `#!/bin/sh\n[ "$1" != --version ] || exec echo etcd Version: 3.4.99\n${etcd}\n`);
  chmodSync(join(bin, "etcd"), 0o755);
  const path = process.env["PATH"];
  process.env["PATH"] = `${bin}:${path}`;
  const own = newSettings(root, "default", join(root, ".cox"), { ...defaultChoices(), withNode: false }, {});
  const settings = { ...own, run: join(folder, "run"), asRoot: false };
  t.after(async () => {
    process.env["PATH"] = path;
    const left = startedBySupervisor(settings.id);
    signalAll(left, "SIGKILL");
    await haveEnded(left, 5_000);
    rmSync(folder, { recursive: true, force: true });
  });
  const steps: string[] = [];
  return { settings, steps, progress: { step: (text) => void steps.push(text), signal: new AbortController().signal } };
}

const failed = (err: unknown): boolean =>
  err instanceof Failure &&
  err.exitCode === 1 &&
  /^etcd ended 3 times: exit code 1: Error: no etcd today\nthe end of \S+\/etcd\.log:\n(Error: no etcd today\n?){3}$/.test(
    err.message,
  );

test("an up that fails says why and leaves nothing that runs; one beside running processes stops only what it has started", async (t) => {
  const { settings, steps, progress } = await newClone(t);
  await assert.rejects(up({ ...settings, root: join(settings.root, "none") }, progress), {
    message: "the daemons are not built: run ./cox build",
  });
  assert.equal(existsSync(settings.run), false);
  await assert.rejects(up(settings, progress), failed);
  assert.deepEqual(startedBySupervisor(settings.id), []);
  const started = ["etcd", ...controlPlane].map((name) => `started ${name}`);
  assert.deepEqual(
    steps.filter((step) => step.startsWith("started ") && step !== "started the supervisor"),
    started,
  );
  assert.ok(
    steps.includes("started the supervisor") && steps.includes("certificates and kubeconfigs are in place"),
    steps.join("; "),
  );
  assert.equal(steps.filter((step) => step === "etcd ended: exit code 1: Error: no etcd today").length >= 1, true);

  await ensureSupervisor(settings);
  const scheduler = await start(settings, { name: "kube-scheduler", command: "sleep", args: ["600"] });
  await start(settings, { name: "kube-controller-manager", command: "sleep", args: ["600"] });
  const soon = Date.now() / 1000 + 10;
  utimesSync(join(settings.state, "controller-manager.conf"), soon, soon);
  const earlier = await start(settings, { name: "service-routes", command: "sleep", args: ["600"] });
  steps.length = 0;
  await assert.rejects(up(settings, progress), failed);
  assert.equal(runningPid(settings, "kube-scheduler"), scheduler);
  assert.ok(supervisorPid(settings) !== undefined);
  assert.deepEqual(
    startedBySupervisor(settings.id)
      .map(({ name }) => name)
      .toSorted(),
    ["kube-scheduler", "supervisor"],
  );
  assert.notEqual(earlier, undefined);
  const stops = readFileSync(logFile(settings, "supervisor"), "utf8").matchAll(/ (\S+) ended: killed by SIGTERM/gm);
  const order = [...stops].map(([, name]) => name).filter((name) => name !== "service-routes");
  assert.deepEqual(order.slice(-2), ["kube-controller-manager", "kube-apiserver"], "the last one first");
  assert.deepEqual(
    steps.filter((step) => step.startsWith("started ")),
    started.filter((step) => step !== "started kube-scheduler"),
  );
  const restarted = "stopped kube-controller-manager to restart it, since its kubeconfig has changed";
  assert.deepEqual(
    steps.filter((step) => step.startsWith("stopped ")),
    [restarted],
  );
});

test("up waits for etcd, the API server and the rest in this order, and a second one finds everything running", async (t) => {
  const standIn = JSON.stringify(join(import.meta.dirname, "testing", "stand-in.ts"));
  const daemon = (name: string): string =>
    name === "testing" ? onlyRuns : `process.argv.splice(2, 0, "${name}"); import(${standIn});`;
  const clone = await newClone(t, daemon, `exec ${process.execPath} ${standIn} etcd "$@"`);
  const ports = { ...clone.settings.ports };
  for (const name of ["apiserver", "etcd", "etcdPeer", "controllerManager", "scheduler", "kubelet"] as const)
    ports[name] = await freePort();
  const settings = { ...clone.settings, fakeNodes: 2, ports };
  const { steps, progress } = clone;
  await up(settings, progress);
  const named = processNames(settings).map((name) => `started ${name}`);
  assert.deepEqual(
    steps.filter((step) => !step.startsWith("made ")).toSorted(),
    [
      ...named,
      "started the supervisor",
      "certificates and kubeconfigs are in place",
      "the API server is ready",
      "2 fake nodes are Ready",
    ].toSorted(),
  );
  assert.deepEqual(
    steps.filter((step) => named.includes(step)),
    named,
  );
  const requests = (name: string) =>
    readFileSync(logFile(settings, name), "utf8")
      .trim()
      .split("\n")
      .map((line) => line.split(" "));
  const bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
  const [ready, granted] = requests("kube-apiserver");
  assert.deepEqual(
    [ready?.slice(1), granted?.slice(1)],
    [
      ["GET", "/readyz", "200"],
      ["POST", bindings, "201"],
    ],
  );
  const health = requests("etcd").filter(([, , path]) => path === "/health");
  assert.ok(Number(health[2]?.[0]) <= Number(ready?.[0]), "the API server is asked when etcd is ready");
  const accounts = requests("kube-apiserver").filter(([, , path]) => path?.endsWith("/serviceaccounts/default"));
  assert.deepEqual(
    accounts.map(([, , , status]) => status),
    ["404", "200"],
  );
  for (const name of ["kube-controller-manager", "kube-scheduler"])
    assert.deepEqual(requests(name)[0]?.slice(1), ["GET", "/healthz", "200"]);

  steps.length = 0;
  const pids = processNames(settings).map((name) => runningPid(settings, name));
  await up(settings, progress);
  assert.deepEqual(steps, ["the API server is ready", "2 fake nodes are Ready", "everything is running already"]);
  assert.deepEqual(
    processNames(settings).map((name) => runningPid(settings, name)),
    pids,
  );
  await down(settings, progress, false);
});

test("of several steps that run at once, the failure of the first one listed is reported when all have ended", async () => {
  const [one, two, three] = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let settled = false;
  const all = settleAll([undefined, one.promise, two.promise, three.promise]).finally(() => (settled = true));
  three.reject(new Error("three"));
  two.reject(new Error("two"));
  await new Promise(setImmediate);
  assert.equal(settled, false);
  one.resolve();
  await assert.rejects(all, { message: "two" });
  await settleAll([undefined, one.promise]);
});

test("what runs without a supervisor is ended before ports are chosen, and killed when it does not end", async (t) => {
  const { settings } = await newClone(t);
  await ensureSupervisor(settings);
  await start(settings, { name: "etcd", command: "sh", args: ["-c", "trap '' TERM; echo; while :; do sleep 1; done"] });
  const known = await start(settings, { name: "kube-scheduler", command: "sleep", args: ["600"] });
  for (let tries = 0; readFileSync(logFile(settings, "etcd"), "utf8") === ""; tries++) {
    assert.ok(tries < 1_000);
    await delay(10);
  }
  const before = startedBySupervisor(settings.id);
  await endStrays(settings, 100);
  assert.deepEqual(startedBySupervisor(settings.id), before, "a running supervisor knows its processes");
  const supervisor = before.filter(({ name }) => name === "supervisor");
  signalAll(supervisor, "SIGKILL");
  await haveEnded(supervisor, 5_000);
  const file = join(settings.state, "run", "supervisor.json");
  const state = JSON.parse(readFileSync(file, "utf8"));
  delete state.processes.etcd;
  writeFileSync(file, JSON.stringify(state));
  await endStrays(settings, 100);
  assert.deepEqual(
    startedBySupervisor(settings.id).map(({ pid }) => pid),
    [known],
    "what is in the state file is adopted later",
  );
});
