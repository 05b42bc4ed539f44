import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodSpec, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { NodePod } from "../pod/pod.ts";
import { underPressure } from "../pods/admission-checks.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { type Eviction, evictionVerdict, exceededStorage, newEviction, type PodUsage, rankPods } from "./eviction.ts";
import { type Observations, parseThresholds, type Signal, type Threshold, withAllocatable } from "./eviction-thresholds.ts";

const mi = 1024 ** 2;
const none = { hard: {}, soft: {}, softGraceMs: {}, minReclaim: {} };
const used = (memoryMi: number, diskMi = 0, emptyDirs: [string, number][] = []): PodUsage => ({
  memoryBytes: memoryMi * mi,
  diskBytes: diskMi * mi,
  inodes: 0,
  layers: { bytes: 0, inodes: 0 },
  processes: 0,
  containers: [{ name: "main", memoryBytes: memoryMi * mi, diskBytes: diskMi * mi, layerBytes: 0 }],
  emptyDirs: new Map(emptyDirs),
});
const aPod = (name: string, memory?: string, spec: Partial<PodSpec> = {}): NodePod =>
  aNodePod(
    { containers: [aContainer(memory === undefined ? {} : { resources: { requests: { memory } } })], ...spec },
    { name, uid: name },
  );

test("pods above their request are evicted first, then by priority, then by usage above the request", () => {
  const pods = [
    aPod("within", "500Mi"),
    aPod("exactly", "100Mi", { priority: -1 }),
    aPod("over-a-little", "100Mi"),
    aPod("over-a-lot"),
    aPod("over-and-important", "0", { priority: 1000 }),
    aPod("critical", undefined, { priority: 2_000_000_000 }),
  ];
  const usage = new Map([
    ["within", used(400)],
    ["exactly", used(100)],
    ["over-a-little", used(110)],
    ["over-a-lot", used(300)],
    ["over-and-important", used(900)],
    ["critical", used(1000)],
  ]);
  assert.deepEqual(
    rankPods(pods, usage, "memory.available").map((pod) => pod.metadata.name),
    ["over-a-lot", "over-a-little", "over-and-important", "exactly", "within"],
  );
});

test("a pod without measured usage is evicted first, out of processes first of those of its priority", () => {
  for (const signal of ["memory.available", "nodefs.available", "nodefs.inodesFree", "pid.available"] as const) {
    const usage = new Map([["known", { ...used(0), memoryBytes: 1, diskBytes: 1, inodes: 1, processes: 1 }]]);
    const unknown = ["unknown", "also"].map((name) => aPod(name, undefined, { priority: name === "also" ? 7 : 0 }));
    const ranked = rankPods([aPod("known"), ...unknown], usage, signal);
    assert.deepEqual(
      ranked.map((pod) => pod.metadata.name),
      signal === "pid.available" ? ["unknown", "known", "also"] : ["unknown", "also", "known"],
      signal,
    );
  }
});

test("names the containers that used more than they requested", () => {
  const pod = aPod("p", "100Mi");
  assert.equal(
    evictionVerdict(pod, "memory.available", used(150)).message,
    "The node was low on resource: memory. Container main was using 150Mi, which exceeds its request of 100Mi. ",
  );
  assert.partialDeepStrictEqual(evictionVerdict(pod, "nodefs.inodesFree", used(1)), {
    message: "The node was low on resource: inodes. ",
    annotations: { offending_containers: "", starved_resource: "inodes" },
  });
});

for (const { name, spec, usage, want } of [
  {
    name: "an emptyDir within its limit",
    spec: { volumes: [{ name: "v", emptyDir: { sizeLimit: "1Mi" } }] },
    usage: used(0, 0, [["v", mi]]),
    want: undefined,
  },
  {
    name: "an emptyDir above its limit",
    spec: { volumes: [{ name: "v", emptyDir: { sizeLimit: "1Mi" } }] },
    usage: used(0, 0, [["v", mi + 1]]),
    want: 'Usage of EmptyDir volume "v" exceeds the limit "1Mi". ',
  },
  {
    name: "an emptyDir whose limit is 0, which is none",
    spec: { volumes: [{ name: "v", emptyDir: { sizeLimit: "0" } }] },
    usage: used(0, 0, [["v", mi]]),
    want: undefined,
  },
  {
    name: "an emptyDir in memory above its limit, behind one that is not",
    spec: {
      volumes: [
        { name: "u", emptyDir: { sizeLimit: "9Mi" } },
        { name: "v", emptyDir: { sizeLimit: "1Mi", medium: "Memory" } },
      ],
    },
    usage: used(0, 0, [
      ["u", 9 * mi],
      ["v", 9 * mi],
    ]),
    want: 'Usage of EmptyDir volume "v" exceeds the limit "1Mi". ',
  },
  {
    name: "a pod above the limit of its containers",
    spec: { containers: [aContainer({ resources: { limits: { "ephemeral-storage": "1Mi" } } })] },
    usage: used(0, 2),
    want: "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
  },
  {
    name: "a pod above the limits of those of its containers that have one",
    spec: { containers: [aContainer({ resources: { limits: { "ephemeral-storage": "1Mi" } } }), aContainer({ name: "b" })] },
    usage: used(0, 2),
    want: "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ",
  },
  {
    name: "one container of two above its limit",
    spec: {
      containers: ["main", "b"].map((name) => aContainer({ name, resources: { limits: { "ephemeral-storage": "1Mi" } } })),
    },
    usage: used(0, 2),
    want: 'Container main exceeded its local ephemeral storage limit "1Mi". ',
  },
  {
    name: "a pod at the limit of its only container",
    spec: { containers: [aContainer({ resources: { limits: { "ephemeral-storage": "1Mi" } } })] },
    usage: used(0, 1),
    want: undefined,
  },
] as { name: string; spec: Partial<PodSpec> & { volumes?: Volume[] }; usage: PodUsage; want: string | undefined }[]) {
  test(`storage: ${name}`, () => assert.equal(exceededStorage(aNodePod(spec), usage)?.message, want));
}

function manage(
  settings: Parameters<typeof parseThresholds>[0],
  pods: NodePod[],
  change: (thresholds: Threshold[]) => Threshold[] = (thresholds) => thresholds,
  hasImageFs = false,
): {
  eviction: Eviction;
  seen: Observations;
  clock: ReturnType<typeof newFakeClock>;
  evicted: string[];
  usage: Map<string, PodUsage>;
  reclaim: { run: () => void };
  reported: string[];
} {
  const clock = newFakeClock();
  const seen: Observations = {
    "memory.available": { available: 1000 * mi, capacity: 1024 * mi },
    "nodefs.available": { available: 1000, capacity: 1000 },
  };
  const evicted: string[] = [];
  const usage = new Map<string, PodUsage>();
  const reported: string[] = [];
  const reclaim = { run: (): void => undefined };
  const eviction = newEviction({
    clock,
    log: discardLogger,
    thresholds: change(parseThresholds(settings)),
    transitionMs: 300_000,
    maxGraceSeconds: 5,
    observe: async () => seen,
    hasImageFs: () => hasImageFs,
    usage: async () => usage,
    activePods: () => pods,
    reclaimDisk: async () => reclaim.run(),
    evict: async (pod, { reason }, grace) => void evicted.push(`${pod.metadata.name} ${reason} ${grace}`),
    onDue: () => undefined,
    reportNodeEvent: (type, reason, message) => void reported.push(`${type} ${reason} ${message}`),
    onPressureChange: () => undefined,
  });
  return { eviction, seen, clock, evicted, usage, reclaim, reported };
}

test("memory below the hard threshold evicts one pod at once, and MemoryPressure holds for five minutes", async () => {
  const { eviction, seen, clock, evicted, usage } = manage({ ...none, hard: { "memory.available": "100Mi" } }, [
    aPod("small", "10Mi"),
    aPod("big"),
  ]);
  usage.set("big", used(800)).set("small", used(1));
  await eviction.check();
  assert.deepEqual([eviction.pressure.memory, evicted], [false, []]);
  seen["memory.available"] = { available: 50 * mi, capacity: 1024 * mi };
  await eviction.check();
  assert.deepEqual([eviction.pressure.memory, evicted], [true, ["big Evicted 0"]]);
  seen["memory.available"] = { available: 900 * mi, capacity: 1024 * mi };
  await clock.advance(10_000);
  await eviction.check();
  assert.deepEqual([eviction.pressure.memory, evicted.length], [true, 1]);
  await clock.advance(300_000);
  await eviction.check();
  assert.equal(eviction.pressure.memory, false);
});

test("a soft threshold evicts after its grace period, with a grace period for the pod", async () => {
  const settings = { ...none, soft: { "memory.available": "100Mi" }, softGraceMs: { "memory.available": 60_000 } };
  const { eviction, seen, clock, evicted, reported } = manage(settings, [aPod("p")]);
  seen["memory.available"] = { available: 50 * mi, capacity: 1024 * mi };
  await eviction.check();
  assert.equal(eviction.pressure.memory, true, "the node says so at once");
  await clock.advance(59_000);
  await eviction.check();
  assert.deepEqual(evicted, []);
  await clock.advance(1_000);
  await eviction.check();
  assert.deepEqual(evicted, ["p Evicted 5"]);
  assert.deepEqual(reported, ["Warning EvictionThresholdMet Attempting to reclaim memory"]);
});

test("on a full disk unused images and containers are reclaimed before pods are evicted", async () => {
  const { eviction, seen, evicted, reclaim } = manage({ ...none, hard: { "nodefs.available": "10%" } }, [aPod("p")]);
  seen["nodefs.available"] = { available: 50, capacity: 1000 };
  reclaim.run = () => {
    seen["nodefs.available"] = { available: 500, capacity: 1000 };
  };
  await eviction.check();
  assert.deepEqual([eviction.pressure.disk, evicted], [true, []]);
  reclaim.run = () => undefined;
  seen["nodefs.available"] = { available: 50, capacity: 1000 };
  await eviction.check();
  assert.deepEqual(evicted, ["p Evicted 0"]);
});

test("memory pressure rejects BestEffort pods, disk pressure all but critical pods", () => {
  const memory = { memory: true, disk: false, pid: false };
  const disk = { memory: false, disk: true, pid: false };
  assert.deepEqual(underPressure(aPod("p"), memory), {
    reason: "Evicted",
    message: "The node had condition: [MemoryPressure]. ",
  });
  assert.equal(underPressure(aPod("p", "1Mi"), memory), undefined);
  assert.equal(underPressure(aPod("p", undefined, { tolerations: [{ operator: "Exists" }] }), memory), undefined);
  assert.ok(underPressure(aPod("p", "1Mi"), disk));
  assert.equal(underPressure(aPod("p", "1Mi", { priority: 2_000_000_000 }), disk), undefined);
});

test("out of inodes the pod with the most files is evicted, out of processes the one with the most processes", () => {
  const pods = [aPod("few"), aPod("many"), aPod("important", undefined, { priority: 1000 })];
  const usage = new Map([
    ["few", { ...used(900, 900), inodes: 10, processes: 30 }],
    ["many", { ...used(1, 1), inodes: 20, processes: 40 }],
    ["important", { ...used(1, 1), inodes: 9000, processes: 9000 }],
  ]);
  const ranked = (signal: Signal): string[] => rankPods(pods, usage, signal).map(({ metadata }) => metadata.name);
  for (const signal of ["nodefs.inodesFree", "imagefs.inodesFree", "pid.available"] as const) {
    assert.deepEqual(ranked(signal), ["many", "few", "important"], signal);
  }
});

test("of separate file systems only usage of that of the signal counts: writable layers in that of images, other files in the node's", () => {
  const pods = [aPod("layer"), aPod("files"), aPod("both")];
  const usage = new Map(
    Object.entries({ layer: [50, 50, 9, 9], files: [60, 0, 10, 0], both: [90, 40, 12, 7] }).map(
      ([name, [diskMi = 0, layerMi = 0, inodes = 0, ofLayers = 0]]) =>
        [name, { ...used(1, diskMi), inodes, layers: { bytes: layerMi * mi, inodes: ofLayers } }] as const,
    ),
  );
  const ranked = (signal: Signal, hasImageFs: boolean): string =>
    rankPods(pods, usage, signal, hasImageFs)
      .map(({ metadata }) => metadata.name)
      .join();
  const signals = ["imagefs.available", "nodefs.available", "imagefs.inodesFree", "nodefs.inodesFree"] as const;
  assert.deepEqual(
    signals.map((signal) => [ranked(signal, false), ranked(signal, true)]),
    [
      ["both,files,layer", "layer,both,files"],
      ["both,files,layer", "files,both,layer"],
      ["both,files,layer", "layer,both,files"],
      ["both,files,layer", "files,both,layer"],
    ],
  );
});

test("writable layers in a file system of their own do not count for limits of local storage", () => {
  const limited = aContainer({ resources: { limits: { "ephemeral-storage": "5Mi" } } });
  const of = (diskMi: number, layerMi: number): PodUsage => ({
    ...used(0, diskMi),
    layers: { bytes: layerMi * mi, inodes: 0 },
    containers: [{ name: "main", memoryBytes: 0, diskBytes: diskMi * mi, layerBytes: layerMi * mi }],
  });
  const exceeded = (usage: PodUsage, hasImageFs: boolean) =>
    exceededStorage(aNodePod({ containers: [limited] }), usage, hasImageFs)?.limit;
  assert.deepEqual([exceeded(of(6, 1), false), exceeded(of(6, 1), true)], ["ephemeralpodfs.limit", undefined]);
  assert.equal(exceeded(of(9, 3), true), "ephemeralpodfs.limit");
  const other = { ...of(9, 3), diskBytes: 5 * mi };
  assert.deepEqual(
    [exceeded(other, true), exceeded({ ...other, containers: of(8, 3).containers }, true)],
    ["ephemeralcontainerfs.limit", undefined],
  );
});

for (const { signal, reclaims } of [
  { signal: "nodefs.available", reclaims: 0 },
  { signal: "nodefs.inodesFree", reclaims: 0 },
  { signal: "imagefs.available", reclaims: 1 },
  { signal: "imagefs.inodesFree", reclaims: 1 },
] as const) {
  test(`with a file system for images ${reclaims ? "" : "no "}images are removed for ${signal}`, async () => {
    const { eviction, seen, evicted, reclaim } = manage({ ...none, hard: { [signal]: "10%" } }, [aPod("p")], undefined, true);
    seen[signal] = { available: 50, capacity: 1000 };
    let times = 0;
    reclaim.run = () => void times++;
    await eviction.check();
    assert.deepEqual([times, evicted], [reclaims, ["p Evicted 0"]]);
  });
}

test("a pod is evicted when reclaiming leaves another disk threshold met", async () => {
  const settings = { ...none, hard: { "nodefs.available": "10%", "nodefs.inodesFree": "5%" } };
  const { eviction, seen, evicted, reclaim } = manage(settings, [aPod("p")]);
  seen["nodefs.available"] = { available: 50, capacity: 1000 };
  seen["nodefs.inodesFree"] = { available: 1, capacity: 1000 };
  reclaim.run = () => {
    seen["nodefs.available"] = { available: 500, capacity: 1000 };
  };
  await eviction.check();
  assert.deepEqual(evicted, ["p Evicted 0"]);
});

test("a pod is evicted when nothing can be reclaimed from the disk", async () => {
  const { eviction, seen, evicted, reclaim } = manage({ ...none, hard: { "nodefs.available": "10%" } }, [aPod("p")]);
  seen["nodefs.available"] = { available: 50, capacity: 1000 };
  reclaim.run = () => {
    throw new Error("the runtime is away");
  };
  await eviction.check();
  assert.deepEqual(evicted, ["p Evicted 0"]);
});

test("exhausting allocatable memory evicts a pod where pods are limited to it", async () => {
  const settings = {
    hard: { "memory.available": "100Mi", "nodefs.available": "10%" },
    soft: { "memory.available": "200Mi" },
    softGraceMs: { "memory.available": 60_000 },
    minReclaim: {},
  };
  const added = withAllocatable(parseThresholds(settings)).slice(3);
  assert.deepEqual(
    added.map(({ signal, value, graceMs }) => [signal, value, graceMs]),
    [["allocatableMemory.available", "100Mi", 0]],
  );
  const { eviction, seen, evicted, reported } = manage(settings, [aPod("p")], withAllocatable);
  seen["allocatableMemory.available"] = { available: 50 * mi, capacity: 512 * mi };
  await eviction.check();
  assert.deepEqual([eviction.pressure.memory, evicted], [true, ["p Evicted 0"]]);
  assert.deepEqual(reported, ["Warning EvictionThresholdMet Attempting to reclaim memory"]);
});
