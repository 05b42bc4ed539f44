import assert from "node:assert/strict";
import { test } from "node:test";
import { aPod, type PodOptions } from "@coxswain/apimachinery/testing/builders";
import type { PodMetrics } from "./metrics-client.ts";
import {
  type Rules,
  replicasForAverage,
  replicasForShare,
  replicasForUtilization,
  replicasForValue,
} from "./replica-calculator.ts";

const now = Date.parse("2024-01-01T12:00:00Z");
const rules: Rules = { tolerance: 0.1, cpuInitializationMs: 120_000, initialReadinessMs: 10_000, now };
const ago = (seconds: number): string => new Date(now - seconds * 1000).toISOString().replace(".000", "");

/** A Pod that has been ready for long and requests 1 CPU. */
const pod = (n: number, options: PodOptions & { request?: string } = {}) =>
  aPod({
    name: `p${n}`,
    readySince: ago(3000),
    spec: { containers: [{ name: "main", image: "x", resources: { requests: { cpu: options.request ?? "1", memory: "1k" } } }] },
    ...options,
    status: { startTime: ago(3600), ...options.status },
  });
const samples = (...values: (number | undefined)[]): PodMetrics =>
  new Map(values.flatMap((value, i) => (value === undefined ? [] : [[`p${i}`, { value, at: now - 10_000, windowMs: 60_000 }]])));
const pods = (...options: (Parameters<typeof pod>[1] | undefined)[]) => options.map((own, i) => pod(i, own));
const utilization = (
  all: ReturnType<typeof pods>,
  metrics: PodMetrics,
  target: number,
  { current = all.length, resource = "cpu", container }: { current?: number; resource?: string; container?: string } = {},
) => replicasForUtilization({ pods: all, metrics, resource, container, target, current, rules });

const starting = { status: { startTime: ago(60) }, readySince: ago(30) };
const unready = { ready: false, readySince: ago(30), status: { startTime: ago(60) } };

for (const { name, of, metrics, target, want, percent } of [
  { name: "scales up in proportion", of: [{}, {}, {}], metrics: [300, 500, 700], target: 30, want: 5, percent: 50 },
  {
    name: "scales down in proportion",
    of: [{}, {}, {}, {}, {}],
    metrics: [100, 300, 500, 250, 250],
    target: 50,
    want: 3,
    percent: 28,
  },
  { name: "leaves it at the tolerance", of: [{}, {}, {}], metrics: [1010, 1030, 1020], target: 100, want: 3, percent: 102 },
  {
    name: "a starting pod counts as using nothing, going up",
    of: [{}, {}, unready],
    metrics: [900, 900, 100],
    target: 30,
    want: 6,
    percent: 90,
  },
  {
    name: "a starting pod does not turn up into down",
    of: [{}, unready, unready],
    metrics: [400, 500, 700],
    target: 30,
    want: 3,
    percent: 40,
  },
  {
    name: "a starting pod's own use does not count, going down",
    of: [{}, {}, unready],
    metrics: [100, 100, 900],
    target: 50,
    want: 1,
    percent: 10,
  },
  {
    name: "a sample older than the window after readiness does not count",
    of: [{}, {}, starting],
    metrics: [900, 900, 900],
    target: 30,
    want: 6,
    percent: 90,
  },
  {
    name: "a pending pod counts as one that is starting",
    of: [{}, {}, { phase: "Pending" }],
    metrics: [900, 900, undefined],
    target: 30,
    want: 6,
    percent: 90,
  },
  ...[
    { what: "Ready condition", status: { conditions: [] } },
    { what: "start time", status: { startTime: undefined } },
  ].map(({ what, status }) => ({
    name: `a pod without a ${what} counts as one that is starting`,
    of: [{}, {}, { status: status as never }],
    metrics: [900, 900, 900],
    target: 30,
    want: 6,
    percent: 90,
  })),
  {
    name: "a pod without a sample counts as using nothing, going up",
    of: [{}, {}, {}, {}],
    metrics: [1000, 900, 900, undefined],
    target: 50,
    want: 6,
    percent: 93,
  },
  {
    name: "a pod without a sample counts as using all that it requests, going down",
    of: [{}, {}, {}, {}],
    metrics: [100, 100, 100, undefined],
    target: 50,
    want: 3,
    percent: 10,
  },
  {
    name: "failed pods and those on their way out count for nothing",
    of: [{}, { phase: "Failed" }, { deletedAt: ago(1) }],
    metrics: [600, 900, 900],
    target: 30,
    want: 2,
    percent: 60,
  },
  {
    name: "a pod that stopped being ready long after its start counts",
    of: [{}, { ready: false }],
    metrics: [600, 600],
    target: 30,
    want: 4,
    percent: 60,
  },
  {
    name: "a starting pod keeps it where it is when that brings the use near the target",
    of: [{}, {}, unready],
    metrics: [480, 480, 100],
    target: 30,
    want: 3,
    percent: 48,
  },
  {
    name: "a pod without a sample changes nothing when the others are at the target",
    of: [{}, {}, {}],
    metrics: [500, 500, undefined],
    target: 50,
    want: 3,
    percent: 50,
  },
  {
    name: "a pod whose initialization has just ended counts though it is not ready",
    of: [{}, { ready: false, readySince: ago(30), status: { startTime: ago(120) } }],
    metrics: [600, 600],
    target: 30,
    want: 4,
    percent: 60,
  },
  {
    name: "a pod that stopped being ready as long after its start as the initial delay counts",
    of: [{}, { ready: false, readySince: ago(3590) }],
    metrics: [600, 600],
    target: 30,
    want: 4,
    percent: 60,
  },
  {
    name: "a sample whose window begins with the readiness counts",
    of: [{}, {}, { status: { startTime: ago(100) }, readySince: ago(70) }],
    metrics: [900, 900, 900],
    target: 30,
    want: 9,
    percent: 90,
  },
  {
    name: "a pod that never was ready does not, going down",
    of: [{}, {}, { ready: false, readySince: ago(3599) }],
    metrics: [100, 100, 900],
    target: 50,
    want: 1,
    percent: 10,
  },
] as const) {
  test(`a share of requests: ${name}`, () => {
    const { replicas, utilization: shown } = utilization(pods(...(of as readonly object[])), samples(...metrics), target);
    assert.deepEqual({ replicas, shown }, { replicas: want, shown: percent });
  });
}

test("pods without samples, of more than are wanted, do not turn down into up", () => {
  const { replicas } = utilization(pods({}, {}, {}, {}), samples(300, 300, undefined, undefined), 100, { current: 2 });
  assert.equal(replicas, 2);
});

test("only CPU is mistrusted after a start", () => {
  const metrics = samples(900, 900);
  assert.equal(utilization(pods({}, unready), metrics, 30).replicas, 3);
  assert.equal(utilization(pods({}, unready), samples(900_000, 900_000), 30, { resource: "memory" }).replicas, 6);
});

test("a container's share is of that container's request", () => {
  const two = pod(0, {
    spec: {
      containers: [
        { name: "app", image: "x", resources: { requests: { cpu: "500m" } } },
        { name: "side", image: "x" },
      ],
    },
  });
  assert.equal(utilization([two], samples(500), 50, { container: "app" }).utilization, 100);
  assert.throws(() => utilization([two], samples(500), 50), { message: "missing request for cpu" });
});

for (const { name, all, metrics, message } of [
  { name: "no pods", all: [], metrics: samples(1), message: "no pods returned by selector while calculating replica count" },
  {
    name: "no sample of a pod that counts",
    all: pods({ phase: "Pending" }),
    metrics: samples(1),
    message: "did not receive metrics for any ready pods",
  },
  {
    name: "samples of others only",
    all: pods({}),
    metrics: new Map([["other", { value: 1, at: now, windowMs: 0 }]]),
    message: "no metrics returned matched known pods",
  },
]) {
  test(`a share of requests cannot be computed with ${name}`, () => {
    assert.throws(() => utilization(all, metrics, 50), { message });
  });
}

for (const { name, of, metrics, target, current, want, value } of [
  {
    name: "scales up in proportion",
    of: [{}, {}, {}],
    metrics: [20_000, 10_000, 30_000],
    target: 15_000,
    current: 3,
    want: 4,
    value: 20_000,
  },
  {
    name: "scales down in proportion",
    of: [{}, {}, {}, {}, {}],
    metrics: [12_000, 12_000, 12_000, 12_000, 12_000],
    target: 20_000,
    current: 5,
    want: 3,
    value: 12_000,
  },
  {
    name: "a pod without a sample counts as at its target, going down",
    of: [{}, {}, {}],
    metrics: [10_000, 10_000, undefined],
    target: 50_000,
    current: 3,
    want: 2,
    value: 10_000,
  },
  {
    name: "a pod without a sample counts as zero, going up",
    of: [{}, {}, {}],
    metrics: [40_000, 40_000, undefined],
    target: 20_000,
    current: 3,
    want: 4,
    value: 40_000,
  },
  {
    name: "a pod without a sample counts as zero when the others are at the target",
    of: [{}, {}, {}],
    metrics: [20_000, 20_000, undefined],
    target: 20_000,
    current: 3,
    want: 2,
    value: 20_000,
  },
  {
    name: "readiness does not matter",
    of: [unready, unready],
    metrics: [40_000, 40_000],
    target: 20_000,
    current: 2,
    want: 4,
    value: 40_000,
  },
  {
    name: "only pending pods hold it back, going up",
    of: [{}, { phase: "Pending" }],
    metrics: [40_000, undefined],
    target: 10_000,
    current: 2,
    want: 4,
    value: 40_000,
  },
] as const) {
  test(`an average: ${name}`, () => {
    const options = {
      pods: pods(...(of as readonly object[])),
      metrics: samples(...metrics),
      resource: undefined,
      target,
      current,
      rules,
    };
    assert.deepEqual(replicasForAverage(options), { replicas: want, value });
  });
}

test("a value as a whole multiplies the ready pods, or what there is not", () => {
  const ended = pod(3);
  const all = [...pods({}, {}, { ready: false }), { ...ended, status: { ...ended.status, phase: "Succeeded" } }];
  const forValue = (value: number, current = 3, own = rules) =>
    replicasForValue({ pods: all, value, target: 10_000, current, rules: own }).replicas;
  assert.equal(forValue(15_000, 3, { ...rules, tolerance: 0.5 }), 3, "a deviation as large as the tolerance");
  assert.equal(forValue(20_000), 4);
  assert.equal(forValue(10_900), 3);
  assert.equal(forValue(25_000, 0), 3);
  assert.throws(() => replicasForValue({ pods: [], value: 20_000, target: 10_000, current: 1, rules }), {
    message: "unable to calculate ready pods: no pods returned by selector while calculating replica count",
  });
});

test("a shared value is divided by its target, unless that changes little", () => {
  const forShare = (value: number, current: number) => replicasForShare({ value, target: 10_000, current, rules });
  assert.deepEqual(forShare(41_000, 3), { replicas: 5, value: 13_667 });
  assert.deepEqual(forShare(41_000, 4), { replicas: 4, value: 10_250 });
  assert.deepEqual(forShare(21_000, 0), { replicas: 3, value: 21_000 });
});
