import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { hasExitCode } from "@coxswain/apimachinery/testing/wait-for";
import { processState, runningPid } from "@coxswain/dev-cluster/processes";
import { sendRequest, supervisorPid } from "@coxswain/dev-cluster/supervisor-client";
import { processNames } from "@coxswain/dev-cluster/up";
import { newOwnCluster, type OwnCluster, removeOwnCluster } from "../../framework/own-cluster.ts";
import type { PodView } from "../../framework/pods.ts";
import { waitFor } from "../../framework/wait-for.ts";

/**
 * Machine faults from which a cluster recovers without intervention. All tests share one separate cluster on its own file
 * system, which can be filled without affecting others.
 */
const folder = mkdtempSync(join(tmpdir(), "cox-recovery-"));
const disk = join(folder, "disk");
const state = join(disk, "state");
let cluster: OwnCluster;

before(async () => {
  mkdirSync(disk);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=1g", "cox-recovery", disk]);
  cluster = await newOwnCluster(state);
  // With a full disk the kubelet would evict pods and delete images, which cannot be pulled again here.
  await cluster.mustCox(
    "up",
    "--kubelet-arg",
    "eviction-hard=memory.available<1Mi",
    "--kubelet-arg",
    "image-gc-high-threshold=100",
  );
  writeFileSync(join(folder, "web.json"), JSON.stringify(web));
  await cluster.kubectl("apply", "-f", join(folder, "web.json"));
  await cluster.kubectl("rollout", "status", "deployment/web", "--timeout=120s");
});

after(async () => {
  await removeOwnCluster(cluster).catch((err: Error) => process.stderr.write(`${err.message}\n`));
  execFileSync("umount", ["--lazy", disk]);
  rmSync(folder, { recursive: true, force: true });
});

const web = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web" },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: "web" } },
    template: {
      metadata: { labels: { app: "web" } },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [{ name: "main", image: "busybox:1.36", command: ["sleep", "3600"] }],
      },
    },
  },
};

const pods = async (): Promise<PodView[]> =>
  (JSON.parse(await cluster.kubectl("get", "pods", "-l", "app=web", "-o", "json")) as { items: PodView[] }).items;
const containersOf = (views: readonly PodView[]): string[] =>
  views.map(({ status }) => status.containerStatuses?.[0]?.containerID ?? "none").toSorted();
let replicas = web.spec.replicas;

/** Scales by one pod, alternately up and down, which involves all parts of the cluster. */
async function scales(): Promise<void> {
  replicas = replicas === 2 ? 3 : 2;
  await waitFor("the deployment to be scaled", () => cluster.kubectl("scale", "deployment/web", `--replicas=${replicas}`), {
    retry: hasExitCode,
  });
  await waitFor(
    `${replicas} pods to run`,
    async () => {
      const views = await pods();
      return views.length === replicas && views.every(({ status }) => status.containerStatuses?.[0]?.ready);
    },
    { retry: hasExitCode },
  );
}

const allReady = (): Promise<true> =>
  waitFor("status to find all of it ready", async () => (await cluster.cox("status")).code === 0);

/** Kills processes and waits until the supervisor has restarted them. */
async function kill(names: readonly string[]): Promise<void> {
  const before = names.map((name) => runningPid(cluster.settings, name) as number);
  for (const pid of before) process.kill(pid, "SIGKILL");
  await waitFor(`${names.join(", ")} to be started again`, async () =>
    names.every((name, index) => {
      const pid = runningPid(cluster.settings, name);
      return pid !== undefined && pid !== before[index];
    }),
  );
}

/** Injects a fault and verifies that the cluster works afterwards and that running containers were not restarted. */
async function survives(damage: () => Promise<void>): Promise<void> {
  const containers = containersOf(await pods());
  await damage();
  await allReady();
  assert.deepEqual(containersOf(await pods()), containers, "the same containers run on");
  await scales();
}

for (const victim of ["containerd", "coxswain-services"]) {
  test(`kill -9 of ${victim}: it is started again, containers run on`, () => survives(() => kill([victim])));
}

test("kill -9 of all seven together", () => survives(() => kill(processNames(cluster.settings))));

test("status says what was started again, how often and why", async () => {
  const { stdout } = await cluster.cox("status");
  assert.match(stdout, /^containerd +running, pid \d+ +yes +\d+[sm] +[1-9]\d* +1\.\S+ +\d+[sm] ago: killed by SIGKILL$/m);
});

test("kill -9 of the supervisor: daemons keep running, status reports it, up starts another, which restarts what it adopted", async () => {
  await survives(async () => {
    process.kill(supervisorPid(cluster.settings) as number, "SIGKILL");
    await waitFor("the supervisor to be gone", async () => supervisorPid(cluster.settings) === undefined);
    const pids = processNames(cluster.settings).map((name) => runningPid(cluster.settings, name));
    const without = await cluster.cox("status");
    assert.equal(without.code, 1);
    assert.match(without.stdout, /^supervisor +not running/m);
    assert.match(without.stdout, /what ends is not started again; .\/cox up starts it/);
    await cluster.mustCox("up");
    assert.deepEqual(
      processNames(cluster.settings).map((name) => runningPid(cluster.settings, name)),
      pids,
      "it adopts what runs",
    );
    await kill(["kube-scheduler"]);
    assert.match(processState(cluster.settings, "kube-scheduler")?.lastEnd?.reason ?? "", /exit code unknown/);
  });
});

test("the supervisor and a daemon are killed: up starts both", () =>
  survives(async () => {
    process.kill(supervisorPid(cluster.settings) as number, "SIGKILL");
    process.kill(runningPid(cluster.settings, "kube-controller-manager") as number, "SIGKILL");
    await waitFor("both to be gone", async () => runningPid(cluster.settings, "kube-controller-manager") === undefined);
    await cluster.mustCox("up");
  }));

test("etcd is paused until both leaders have lost their leases, then continues", () =>
  survives(async () => {
    const leaders = ["kube-controller-manager", "kube-scheduler"];
    const began = leaders.map((name) => processState(cluster.settings, name)?.since);
    const etcd = runningPid(cluster.settings, "etcd") as number;
    process.kill(etcd, "SIGSTOP");
    try {
      // A leader that cannot renew its lease exits, as upstream's does.
      await waitFor("both leaders to end", async () =>
        leaders.every((name, index) => processState(cluster.settings, name)?.since !== began[index]),
      );
    } finally {
      process.kill(etcd, "SIGCONT");
    }
  }));

test("the disk is full until etcd has ended, then free again", () =>
  survives(async () => {
    const { settings } = cluster;
    const restarts = processState(settings, "etcd")?.restarts;
    let attempt = 0;
    try {
      await waitFor("the supervisor to restart etcd", async () => {
        fill(disk, attempt++);
        const large = [`large-${attempt}`, `--from-literal=a=${"x".repeat(500_000)}`, "--request-timeout=2s"];
        await cluster.kubectl("create", "configmap", ...large).catch(() => {});
        const { processes } = await sendRequest(settings, { verb: "status" }); // the status file cannot be written while the disk is full
        return processes["etcd"]?.state.restarts !== restarts;
      });
    } finally {
      rmSync(filler(disk), { recursive: true, force: true });
    }
  }));

const filler = (folder: string): string => join(folder, "filler");

/** Fills the remaining space. @param attempt makes file names unique */
function fill(folder: string, attempt: number): void {
  mkdirSync(filler(folder), { recursive: true });
  const block = Buffer.alloc(1 << 20);
  for (let size = block.length, file = 0; size > 0; file++) {
    try {
      writeFileSync(join(filler(folder), `${attempt}-${file}`), block.subarray(0, size));
    } catch {
      size >>= 1; // fills the last bytes too
    }
  }
}
