import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { CronJob, Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Lease } from "@coxswain/apimachinery/objects/schema/kinds/coordination/v1";
import type { Event, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { cronJobs, deployments, events, jobs, leases, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { type Cluster, createCluster } from "./create-cluster.ts";
import { aDeployment, isReady } from "./testing/objects.ts";

const startsAt = "2030-05-01T08:00:00Z";
let prepared: Promise<Cluster> | undefined;
const original = (): Promise<Cluster> => {
  prepared ??= createCluster({ clock: { startsAt } });
  return prepared;
};
after(async () => (await prepared)?.stop());

const template = { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] } };

test("an hour passes at once: a cron job runs each ten minutes, and finished jobs go after their time to live", async () => {
  await using cluster = await (await original()).fork({
    controllers: ["serviceaccount", "cronjob", "job", "ttl-after-finished", "garbagecollector"],
  });
  const job = { spec: { template, ttlSecondsAfterFinished: 1_800 } };
  const spec = { schedule: "*/10 * * * *", successfulJobsHistoryLimit: 100, jobTemplate: job };
  await cluster.client.create<CronJob>(cronJobs, { metadata: { name: "tick", namespace: "default" }, spec } as CronJob);
  const begun = cluster.now();
  await cluster.advance("61m");
  assert.equal(cluster.now() - begun, 3_660_000);
  const { items } = await cluster.client.list<Job>(jobs, { namespace: "default" });
  // Jobs that finished within the last half hour are kept.
  assert.deepEqual(
    items.map(({ metadata }) => metadata.creationTimestamp).sort(),
    ["08:40:00", "08:50:00", "09:00:00"].map((at) => `2030-05-01T${at}Z`),
  );
  assert.ok(items.every(({ status }) => status?.succeeded === 1));
});

test("nodes renew their leases within each ten seconds, none at the moment of another", async () => {
  await using cluster = await (await original()).fork({ nodes: 5, controllers: false, scheduler: false });
  for (const _ of [1, 2]) {
    await cluster.advance("11s");
    const { items } = await cluster.client.list<Lease>(leases, { namespace: "kube-node-lease" });
    const renewed = items.map(({ spec }) => Date.parse(spec?.renewTime ?? ""));
    assert.equal(new Set(renewed).size, 5);
    assert.ok(renewed.every((at) => cluster.now() - at <= 10_000));
  }
});

test("virtual time does not advance between calls", async () => {
  const cluster = await original();
  const before = cluster.now();
  await cluster.client.list(pods);
  await new Promise((resolve) => void setTimeout(resolve, 20));
  assert.equal(cluster.now(), before);
});

test("a program under test sleeps in virtual time until it is stopped", async () => {
  await using cluster = await (await original()).fork({ nodes: 0, controllers: false, scheduler: false });
  const stopping = new AbortController();
  const begun = cluster.now();
  const woken: number[] = [];
  const program = (async () => {
    for (;;) {
      await cluster.sleep("3m", stopping.signal);
      woken.push(cluster.now() - begun);
    }
  })();
  await cluster.advance("2m");
  assert.deepEqual(woken, []);
  await cluster.advance("5m");
  assert.deepEqual(woken, [180_000, 360_000]);
  stopping.abort(new Error("enough"));
  await assert.rejects(program, /enough/);
  await assert.rejects(cluster.sleep("soon"), /"soon" is not a duration/);
});

test("events are deleted after an hour", async () => {
  await using cluster = await (await original()).fork({ controllers: ["serviceaccount", "deployment", "replicaset"] });
  await cluster.client.create(deployments, aDeployment("web", 1));
  await cluster.eventually(deployments, { namespace: "default", name: "web" }, isReady(1) as never);
  const reasons = async () => (await cluster.client.list<Event>(events)).items.map(({ reason }) => reason);
  await cluster.settle();
  assert.ok((await reasons()).includes("ScalingReplicaSet"));
  await cluster.advance("61m");
  assert.ok(!(await reasons()).includes("ScalingReplicaSet"));
});

test("a crash loop backs off as the kubelet's does", async () => {
  await using cluster = await (await original()).fork({ controllers: false, pods: [{ ends: { after: "2s", exitCode: 3 } }] });
  const pod = { metadata: { name: "loop", namespace: "default" }, spec: { containers: [{ name: "c", image: "i" }] } };
  await cluster.client.create(pods, pod as never);
  const restarts = async () => {
    const { status } = await cluster.client.get<Pod>(pods, { namespace: "default", name: "loop" });
    return status?.containerStatuses?.[0]?.restartCount;
  };
  // Exits 2 s after each start; then waits 10, 20, 40, … 300 s.
  const seen: (number | undefined)[] = [];
  for (const by of ["11s", "3s", "19s", "5s", "10m"]) {
    await cluster.advance(by);
    seen.push(await restarts());
  }
  // After 638 s: restarted at 12, 34, 76, 158, 320 and 622 s.
  assert.deepEqual(seen, [0, 1, 1, 2, 6]);
  const { status } = await cluster.client.get<Pod>(pods, { namespace: "default", name: "loop" });
  assert.equal(status?.containerStatuses?.[0]?.lastState?.terminated?.exitCode, 3);
});

test("pods end by their deadline, which an update may bring forward, also those that never started; a copy keeps it", async () => {
  const waits = { match: { name: "waits" }, waits: { reason: "ImagePullBackOff" } };
  await using cluster = await (await original()).fork({ pods: [waits] });
  const create = (name: string, activeDeadlineSeconds: number) =>
    cluster.client.create(pods, {
      metadata: { name, namespace: "default" },
      spec: { activeDeadlineSeconds, containers: [{ name: "c", image: "nginx" }] },
    } as never);
  for (const [name, seconds] of Object.entries({ runs: 60, waits: 60, updated: 3_600, later: 3_600 }))
    await create(name, seconds);
  const statesOf = async (from: typeof cluster) => {
    const { items } = await from.client.list<Pod>(pods, { namespace: "default" });
    return Object.fromEntries(
      items.map(({ metadata, status }) => {
        const { terminated, waiting, running } = status?.containerStatuses?.[0]?.state ?? {};
        const container = terminated?.exitCode ?? waiting?.reason ?? (running && "running");
        return [metadata.name, `${status?.phase} ${status?.reason ?? ""} ${container}`];
      }),
    );
  };
  await cluster.advance("55s");
  const before = {
    runs: "Running  running",
    waits: "Pending  ImagePullBackOff",
    updated: "Running  running",
    later: "Running  running",
  };
  assert.deepEqual(await statesOf(cluster), before);
  await using copy = await cluster.fork();
  const update = { type: "merge", body: { spec: { activeDeadlineSeconds: 58 } } } as const;
  await cluster.client.patch(pods, { namespace: "default", name: "updated" }, update);
  await cluster.advance("10s");
  const over = { runs: "Failed DeadlineExceeded 137", waits: "Failed DeadlineExceeded ImagePullBackOff" };
  assert.deepEqual(await statesOf(cluster), { ...before, ...over, updated: "Failed DeadlineExceeded 137" });
  await copy.advance("10s");
  assert.deepEqual(await statesOf(copy), { ...before, ...over });
});

test("settle ends when nothing more is written", async () => {
  await using cluster = await (await original()).fork({ pods: [{ startAfter: "30s", readyAfter: "8s" }] });
  await cluster.client.create(deployments, aDeployment("web", 3));
  await cluster.settle({ quiet: "1m" });
  await cluster.eventually(deployments, { namespace: "default", name: "web" }, isReady(3) as never, { within: 0 });
});

test("the error of settle names the writes that keep the cluster busy", async () => {
  await using cluster = await (await original()).fork({ pods: [{ ends: { after: "1s" } }] });
  await cluster.client.create(deployments, aDeployment("web", 1));
  await assert.rejects(
    cluster.settle({ quiet: "1m", within: "90s" }),
    /has not settled within 90 s: something was written at least every 60 s[\s\S]*\d+ × pods\/default\/web-\S+ by fake-nodes, last at \+\d+/,
  );
});

test("advancing the real clock is an error", async () => {
  await using cluster = await createCluster({ nodes: 0, controllers: false, scheduler: false });
  await assert.rejects(cluster.advance("1s"), /real time cannot be moved: createCluster\(\{ clock: "virtual" \}\)/);
});
