import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { hasExitCode } from "@coxswain/apimachinery/testing/wait-for";
import { startedBySupervisor } from "@coxswain/dev-cluster/cluster-processes";
import { newProgress } from "@coxswain/dev-cluster/failure";
import { mountsBelow } from "@coxswain/dev-cluster/mounts";
import { processState, runningPid } from "@coxswain/dev-cluster/processes";
import { supervisorPid } from "@coxswain/dev-cluster/supervisor-client";
import { up } from "@coxswain/dev-cluster/up";
import { newOwnCluster, type OwnCluster, removeOwnCluster } from "../../framework/own-cluster.ts";
import { waitFor } from "../../framework/wait-for.ts";

async function clusterFor(t: TestContext): Promise<OwnCluster> {
  const state = mkdtempSync(join(tmpdir(), "cox-down-"));
  const cluster = await newOwnCluster(state);
  t.after(() => removeOwnCluster(cluster));
  return cluster;
}

/** Everything of the cluster that still exists on the machine, by its kernel names. */
function remainsOf({ settings }: OwnCluster): string[] {
  const { id, run, state, bridge } = settings;
  const rules = execFileSync("iptables-save", { encoding: "utf8" });
  const processes = globSync("/proc/[0-9]*/cmdline").filter((file) => {
    try {
      return execFileSync("cat", [file], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).includes(run);
    } catch {
      return false;
    }
  });
  return [
    ...startedBySupervisor(id).map(({ name }) => name),
    ...processes,
    ...globSync(`/sys/fs/cgroup/{,*/}cox-${id}`),
    ...mountsBelow([run, state]),
    ...readdirSync("/sys/class/net").filter((name) => name === bridge),
    ...rules.split("\n").filter((line) => line.includes(`cox-${id}`) || line.includes(`COX-${id}`)),
    ...(existsSync(run) ? [run] : []),
  ];
}

const pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "deaf" },
  spec: {
    containers: [
      {
        name: "main",
        image: "busybox:1.36",
        command: ["sh", "-c", "trap : TERM; while :; do sleep 0.1; done"],
        ports: [{ containerPort: 80, hostPort: 0 }],
        volumeMounts: [{ name: "memory", mountPath: "/memory" }],
      },
    ],
    volumes: [{ name: "memory", emptyDir: { medium: "Memory" } }],
  },
};

async function runPod(cluster: OwnCluster): Promise<void> {
  const file = join(cluster.settings.state, "pod.json");
  const withPort = structuredClone(pod);
  (withPort.spec.containers[0] as (typeof pod.spec.containers)[0]).ports[0] = {
    containerPort: 80,
    hostPort: 20_000 + (process.pid % 10_000),
  };
  writeFileSync(file, JSON.stringify(withPort));
  await waitFor("the pod to be created", () => cluster.kubectl("create", "-f", file), { retry: hasExitCode });
  await cluster.kubectl("wait", "--for=condition=Ready", "pod/deaf", "--timeout=120s");
}

test("down without containerd, its configuration, the supervisor, the settings and the state file leaves nothing", async (t) => {
  const cluster = await clusterFor(t);
  const { settings } = cluster;
  await cluster.mustCox("up");
  await runPod(cluster);
  const before = remainsOf(cluster).join("\n");
  for (const part of ["CNI-HOSTPORT-DNAT", "containerd", "/sys/fs/cgroup", "kubernetes.io~empty-dir/memory", settings.bridge])
    assert.ok(before.includes(part), `a running cluster has ${part}:\n${before}`);

  // A process that uses a mount, and one in the pods' cgroup that ends only on SIGKILL.
  const mount = mountsBelow([settings.state]).find((path) => path.endsWith("kubernetes.io~empty-dir/memory")) as string;
  const cgroup = globSync(`/sys/fs/cgroup/{,*/}cox-${settings.id}/cgroup.procs`)[0] as string;
  const user = spawn("sleep", ["600"], { cwd: mount, stdio: "ignore" });
  t.after(() => void user.kill("SIGKILL"));
  const deaf = spawn("sh", ["-c", `trap '' TERM; echo $$ >'${cgroup}'; echo in; while :; do sleep 1; done`]);
  t.after(() => void deaf.kill("SIGKILL"));
  await new Promise((resolve) => deaf.stdout.once("data", resolve));

  const changed = await newOwnCluster(settings.state, { COX_NODE_NAME: "another" });
  process.kill(supervisorPid(settings) as number, "SIGKILL");
  process.kill(runningPid(settings, "containerd") as number, "SIGKILL");
  rmSync(join(settings.state, "containerd", "config.toml"));
  writeFileSync(join(settings.state, "run", "supervisor.json"), "{ damaged");
  writeFileSync(join(settings.state, "cluster.json"), "{ damaged");
  const { code, stdout, stderr } = await changed.cox("down");
  assert.equal(code, 0, stdout + stderr);
  assert.deepEqual(remainsOf(cluster), []);
  assert.ok(existsSync(join(settings.state, "etcd")), "the data stays");
});

test("down names what it cannot remove and ends with 1; the next down removes it", async (t) => {
  const cluster = await clusterFor(t);
  const { run, state } = cluster.settings;
  await cluster.mustCox("up");
  mkdirSync(join(state, "volumes", "pvc-1"), { recursive: true }); // as a claim of the class "local" makes it
  execFileSync("mount", ["--bind", run, run]); // a mount point cannot be removed
  let mounted = true;
  const unmount = (): void => {
    if (mounted) execFileSync("umount", [run]);
    mounted = false;
  };
  t.after(unmount);
  const { code, stderr } = await cluster.cox("down", "--purge");
  assert.equal(code, 1, stderr);
  assert.match(stderr, new RegExp(`^cox: could not remove, .*\\n(?:.*\\n)*  folder ${run}$`, "m"));
  assert.ok(existsSync(join(cluster.settings.state, "etcd")), "the data stays as long as something does");
  unmount();
  await cluster.mustCox("down", "--purge");
  assert.deepEqual(remainsOf(cluster), []);
  assert.ok(!existsSync(join(state, "volumes")), "the data of claims is part of the data");
});

test("up reports a daemon that exits immediately with its reason, and leaves no process running", async (t) => {
  const cluster = await clusterFor(t);
  const { settings } = cluster;
  const bad = { ...settings, withNode: false, extraArgs: { ...settings.extraArgs, "kube-scheduler": ["--no-such-flag=1"] } };
  await assert.rejects(up(bad, newProgress()), (err: Error) => {
    assert.match(err.message, /^kube-scheduler ended 3 times: exit code 1: .*unknown flag: --no-such-flag/);
    assert.match(err.message, /the end of \S+kube-scheduler.log:\n/);
    return true;
  });
  assert.deepEqual(startedBySupervisor(settings.id), []);
  assert.equal(supervisorPid(settings), undefined);
});

test("up continues when the API server is killed at the moment it has become ready", async (t) => {
  const cluster = await clusterFor(t);
  const settings = { ...cluster.settings, withNode: false };
  const progress = newProgress();
  let kills = 0;
  const step = (text: string): void => {
    progress.step(text);
    if (text === "the API server is ready" && kills++ === 0)
      process.kill(runningPid(settings, "kube-apiserver") as number, "SIGKILL");
  };
  await up(settings, { ...progress, step });
  assert.equal(processState(settings, "kube-apiserver")?.restarts, kills);
});

test("up that is interrupted leaves nothing, or what status knows and down removes", async (t) => {
  const cluster = await clusterFor(t);
  const { settings } = cluster;
  for (const step of ["started containerd", "the API server is ready"]) {
    const child = cluster.start("up");
    await new Promise<void>((resolve) => {
      child.stdout?.on("data", (chunk: Buffer) => chunk.includes(step) && resolve());
      child.once("close", () => resolve());
    });
    child.kill("SIGINT");
    await new Promise<void>((resolve) =>
      (child.exitCode ?? child.signalCode) === null ? child.once("close", () => resolve()) : resolve(),
    );
    const unknown = startedBySupervisor(settings.id).filter(
      ({ name, pid }) => ![runningPid(settings, name), supervisorPid(settings)].includes(pid),
    );
    assert.deepEqual(unknown, [], `after ${step}`);
    await cluster.mustCox("down", "--purge");
    assert.deepEqual(remainsOf(cluster), []);
  }
});
