import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { NodePod } from "../pod/pod.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import {
  type EvictionOptions,
  evictionVerdict,
  exceededStorage,
  hasStorageLimit,
  newEviction,
  type PodUsage,
} from "./eviction.ts";
import { metThresholds, type Observations, type Pressure, parseThresholds } from "./eviction-thresholds.ts";

const mi = 1024 ** 2;
const none = { hard: {}, soft: {}, softGraceMs: {}, minReclaim: {} };
const used = (more: Partial<PodUsage> = {}): PodUsage => ({
  memoryBytes: 0,
  diskBytes: 0,
  inodes: 0,
  layers: { bytes: 0, inodes: 0 },
  processes: 0,
  containers: [],
  emptyDirs: new Map(),
  ...more,
});
const named = (name: string, spec: Partial<NodePod["spec"]> = {}): NodePod => aNodePod(spec, { name, uid: name });

function looking(settings: Partial<typeof none>, pods: NodePod[], more: Partial<EvictionOptions> = {}) {
  const clock = newFakeClock();
  const seen: Observations = {};
  const evicted: string[] = [];
  const pressures: Pressure[] = [];
  const ages: string[] = [];
  const usage = new Map<string, PodUsage>();
  const counts = { observed: 0, used: 0 };
  const eviction = newEviction({
    clock,
    log: discardLogger,
    thresholds: parseThresholds({ ...none, ...settings }),
    transitionMs: 300_000,
    maxGraceSeconds: 5,
    async observe() {
      counts.observed++;
      return seen;
    },
    async usage() {
      counts.used++;
      return usage;
    },
    activePods: () => pods,
    reclaimDisk: async () => undefined,
    evict: async ({ metadata }, _, grace, signal) => void evicted.push(`${metadata.name} ${grace} ${signal}`),
    onDue: (signal, ageMs) => void ages.push(`${signal} ${ageMs}`),
    reportNodeEvent: () => undefined,
    onPressureChange: (pressure) => void pressures.push(pressure),
    ...more,
  });
  const set = (signal: keyof Observations, available: number): void => {
    seen[signal] = { available, capacity: 1000 };
  };
  return { eviction, clock, seen, set, evicted, pressures, usage, counts, ages };
}

test("the grace period of a soft threshold restarts when it was not met in between", async () => {
  const settings = { soft: { "memory.available": "100" }, softGraceMs: { "memory.available": 60_000 } };
  const { eviction, set, clock, evicted } = looking(settings, [named("p")]);
  for (const [available, waitMs] of [
    [50, 50_000],
    [500, 1_000],
    [50, 59_999],
  ] as const) {
    set("memory.available", available);
    await eviction.check();
    await clock.advance(waitMs);
  }
  await eviction.check();
  assert.deepEqual(evicted, []);
  await clock.advance(1);
  await eviction.check();
  assert.deepEqual(evicted, ["p 5 memory.available"]);
});

test("after an eviction a threshold stays met until its minimum reclaim is free as well", async () => {
  const settings = { hard: { "memory.available": "100" }, minReclaim: { "memory.available": "50" } };
  const { eviction, set, evicted } = looking(settings, [named("p")]);
  const check = async (available: number): Promise<number> => {
    set("memory.available", available);
    await eviction.check();
    return evicted.length;
  };
  assert.equal(await check(100), 0, "as much as the threshold is enough");
  assert.equal(await check(99), 1);
  assert.equal(await check(149), 2);
  assert.equal(await check(150), 2);
  assert.equal(await check(149), 2, "it was over");
});

test("each pressure has its own transition period, and only changes are reported", async () => {
  const settings = { hard: { "memory.available": "100", "nodefs.available": "100", "pid.available": "100" } };
  const { eviction, set, clock, pressures } = looking(settings, []);
  const now = (): string => (["memory", "disk", "pid"] as const).filter((kind) => eviction.pressure[kind]).join();
  set("memory.available", 50);
  await eviction.check();
  await eviction.check();
  assert.deepEqual([now(), pressures.length], ["memory", 1]);
  set("memory.available", 500);
  set("nodefs.available", 50);
  await clock.advance(200_000);
  await eviction.check();
  assert.deepEqual([now(), pressures.length], ["memory,disk", 2]);
  set("nodefs.available", 500);
  set("pid.available", 50);
  await clock.advance(100_000);
  await eviction.check();
  assert.equal(now(), "disk,pid", "five minutes after it was seen last");
  await clock.advance(200_000);
  await eviction.check();
  assert.equal(now(), "pid");
  assert.equal(pressures.length, 4);
});

test("with memory and disk pressure at once one pod is evicted, for memory", async () => {
  const settings = { hard: { "nodefs.available": "100", "memory.available": "100" } };
  const { eviction, set, evicted } = looking(settings, [named("a"), named("b")]);
  set("nodefs.available", 50);
  set("memory.available", 50);
  await eviction.check();
  assert.deepEqual(evicted, ["a 0 memory.available"]);
});

test("only pods above their own disk limits are evicted, and the node's pressure is handled by the next check", async () => {
  const limited = { volumes: [{ name: "v", emptyDir: { sizeLimit: "1Mi" } }] };
  const pods = [
    named("fits", limited),
    named("first", limited),
    named("second", limited),
    named("critical", { ...limited, priority: 2_000_000_000 }),
    named("unknown", limited),
  ];
  const { eviction, set, evicted, usage } = looking({ hard: { "memory.available": "100" } }, pods);
  for (const name of ["fits", "first", "second", "critical"]) {
    usage.set(name, used({ emptyDirs: new Map([["v", name === "fits" ? mi : mi + 1]]) }));
  }
  set("memory.available", 50);
  await eviction.check();
  assert.deepEqual(evicted, ["first 0 emptydirfs.limit", "second 0 emptydirfs.limit"]);
  for (const name of ["first", "second"]) usage.delete(name);
  await eviction.check();
  assert.equal(evicted.at(-1)?.endsWith("memory.available"), true);
});

test("limits hold for every volume and every container", () => {
  const emptyDir = (sizeLimit?: string) => ({ emptyDir: sizeLimit === undefined ? {} : { sizeLimit } });
  const volumes = [
    { name: "free", ...emptyDir() },
    { name: "ok", ...emptyDir("2Mi") },
    { name: "full", ...emptyDir("1Mi") },
  ];
  const emptyDirs = new Map(["free", "ok", "full"].map((name) => [name, 2 * mi]));
  assert.match(
    exceededStorage(aNodePod({ volumes }), used({ emptyDirs }))?.message ?? "",
    /volume "full" exceeds the limit "1Mi"/,
  );
  const containers = ["a", "b"].map((name) => aContainer({ name, resources: { limits: { "ephemeral-storage": "2Mi" } } }));
  const of = (a: number, b: number) =>
    [a, b].map((diskBytes, i) => ({ name: "ab"[i] ?? "", memoryBytes: 0, diskBytes, layerBytes: 0 }));
  const pod = aNodePod({ containers });
  assert.equal(
    exceededStorage(pod, used({ diskBytes: 4 * mi, containers: of(2 * mi, 2 * mi) })),
    undefined,
    "as much as the limit is not more",
  );
  assert.deepEqual(exceededStorage(pod, used({ diskBytes: 4 * mi, containers: of(mi, 2 * mi + 1) })), {
    limit: "ephemeralcontainerfs.limit",
    message: 'Container b exceeded its local ephemeral storage limit "2Mi". ',
  });
  assert.equal(exceededStorage(pod, used({ diskBytes: 4 * mi + 1 }))?.limit, "ephemeralpodfs.limit");
  const oneLimited = aNodePod({ containers: [containers[0]!, aContainer({ name: "b" })] });
  assert.equal(
    exceededStorage(oneLimited, used({ diskBytes: 2 * mi, containers: of(0, 2 * mi) })),
    undefined,
    "a container without a limit has none of its own",
  );
});

test("the message names each container above its request, none at it", () => {
  const containers = ["a", "b", "c"].map((name) =>
    aContainer({ name, resources: { requests: { memory: "1Mi", "ephemeral-storage": "3Mi" } } }),
  );
  const usage = used({
    containers: ["a", "b", "c"].map((name, i) => ({ name, memoryBytes: (i + 1) * mi, diskBytes: (i + 2) * mi, layerBytes: 0 })),
  });
  const pod = aNodePod({ containers });
  assert.deepEqual(evictionVerdict(pod, "memory.available", usage), {
    reason: "Evicted",
    message:
      "The node was low on resource: memory. Container b was using 2Mi, which exceeds its request of 1Mi. Container c was using 3Mi, which exceeds its request of 1Mi. ",
    annotations: { offending_containers: "b,c", offending_containers_usage: "2Mi,3Mi", starved_resource: "memory" },
  });
  assert.equal(
    evictionVerdict(pod, "nodefs.available", usage).message,
    "The node was low on resource: ephemeral-storage. Container c was using 4Mi, which exceeds its request of 3Mi. ",
  );
});

for (const { name, own, maxGraceSeconds, want } of [
  { name: "the node's limit where its own time is longer", own: 30, maxGraceSeconds: 5, want: 5 },
  { name: "its own time where that is shorter", own: 3, maxGraceSeconds: 5, want: 3 },
  { name: "its own time where the node has no limit", own: 30, maxGraceSeconds: -1, want: 30 },
  { name: "none where the node gives none", own: 30, maxGraceSeconds: 0, want: 0 },
  { name: "thirty seconds where neither says how long", own: undefined, maxGraceSeconds: -1, want: 30 },
]) {
  test(`a pod that is evicted for a soft threshold has ${name}`, async () => {
    const settings = { soft: { "memory.available": "100" }, softGraceMs: { "memory.available": 0 } };
    const thresholds = parseThresholds({ ...none, ...settings }).map((threshold) => ({ ...threshold, graceMs: 1 }));
    const made = looking({}, [named("p", { ...(own !== undefined && { terminationGracePeriodSeconds: own }) })], {
      maxGraceSeconds,
      thresholds,
    });
    made.set("memory.available", 50);
    await made.eviction.check();
    await made.clock.advance(1);
    await made.eviction.check();
    assert.deepEqual(made.evicted, [`p ${want} memory.available`]);
  });
}

test("a failed eviction is retried by the next check, and the pressure is reported meanwhile", async () => {
  let fails = true;
  const evicted: string[] = [];
  const { eviction, set } = looking({ hard: { "memory.available": "100" } }, [named("p")], {
    evict: async ({ metadata }) => {
      evicted.push(metadata.name);
      if (fails) throw new Error("timeout waiting to kill pod");
    },
  });
  set("memory.available", 50);
  await assert.rejects(eviction.check(), /timeout waiting to kill pod/);
  assert.equal(eviction.pressure.memory, true);
  fails = false;
  await eviction.check();
  assert.deepEqual(evicted, ["p", "p"]);
});

test("an eviction reports the age of the observation for each due threshold, not for a pod's own limits", async () => {
  const settings = { hard: { "nodefs.available": "100", "pid.available": "100", "memory.available": "100" } };
  const pods = [named("c", { priority: 2_000_000_000 })];
  const made = looking(settings, pods, { reclaimDisk: () => made.clock.advance(1_500) });
  const { eviction, set, ages, evicted } = made;
  set("pid.available", 50);
  set("nodefs.available", 50);
  await eviction.check();
  assert.deepEqual(ages, ["nodefs.available 1500", "pid.available 1500"], "with critical pods alone, too");
  assert.deepEqual(evicted, []);
  pods.length = 0;
  await eviction.check();
  assert.equal(ages.length, 2, "not without pods");
  pods.push(named("p", { volumes: [{ name: "v", emptyDir: { sizeLimit: "1" } }] }));
  made.usage.set("p", used({ emptyDirs: new Map([["v", 2]]) }));
  await eviction.check();
  assert.deepEqual([evicted, ages.length], [["p 0 emptydirfs.limit"], 2], "not for the pod's own limit");
});

test("nothing is measured without pressure and limits; critical pods are never evicted", async () => {
  const { eviction, set, counts, evicted } = looking({ hard: { "memory.available": "100" } }, [
    named("c", { priority: 2_000_000_000 }),
  ]);
  set("memory.available", 500);
  await eviction.check();
  assert.deepEqual(counts, { observed: 1, used: 0 });
  set("memory.available", 50);
  await eviction.check();
  assert.deepEqual([counts.used, evicted], [1, []]);
});

test("a percentage refers to the capacity, 0% and 100% disable a threshold, and an unobserved signal is not met", () => {
  const thresholds = parseThresholds({
    ...none,
    hard: { "memory.available": "10%", "nodefs.available": "0%", "imagefs.available": "100%", "pid.available": "10%" },
  });
  assert.deepEqual(
    thresholds.map(({ signal }) => signal),
    ["memory.available", "pid.available"],
  );
  const met = (available: number) =>
    metThresholds(thresholds, { "memory.available": { available, capacity: 1000 } }, new Set()).map(({ signal }) => signal);
  assert.deepEqual([met(99), met(100)], [["memory.available"], []]);
});

test("the end of the last pressure is reported immediately when there is no transition period", async () => {
  const { eviction, set, pressures, clock } = looking({ hard: { "memory.available": "100" } }, [], { transitionMs: 0 });
  for (const available of [50, 50, 500, 500]) {
    set("memory.available", available);
    await eviction.check();
    await clock.advance(10_000);
  }
  assert.deepEqual(
    pressures.map(({ memory }) => memory),
    [true, false],
  );
});

test("a pod is evicted when reclaiming freed less than the threshold's minimum reclaim", async () => {
  const settings = { hard: { "nodefs.available": "100" }, minReclaim: { "nodefs.available": "50" } };
  const frees = [149, 150];
  const made = looking(settings, [named("p")], {
    reclaimDisk: async () => made.set("nodefs.available", frees.shift() ?? 0),
  });
  const { eviction, set, evicted } = made;
  set("nodefs.available", 99);
  await eviction.check();
  assert.equal(evicted.length, 1);
  set("nodefs.available", 99);
  await eviction.check();
  assert.equal(evicted.length, 1);
});

for (const { name, spec, want } of [
  {
    name: "whose second volume has a limit",
    want: true,
    spec: { volumes: [{ name: "a" }, { name: "b", emptyDir: { sizeLimit: "1" } }] },
  },
  {
    name: "whose volumes with a limit are in memory",
    want: true,
    spec: { volumes: [{ name: "a", emptyDir: { sizeLimit: "1", medium: "Memory" } }] },
  },
  {
    name: "whose second container has a limit",
    want: true,
    spec: { containers: [aContainer(), aContainer({ resources: { limits: { "ephemeral-storage": "1Gi" } } })] },
  },
  {
    name: "that only requests storage",
    want: false,
    spec: { containers: [aContainer({ resources: { requests: { "ephemeral-storage": "1Gi" } } })] },
  },
]) {
  test(`local storage of a pod ${name} is ${want ? "" : "not "}measured for a limit`, () =>
    assert.equal(hasStorageLimit(aNodePod(spec)), want));
}
