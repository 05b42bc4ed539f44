/** Lists and maps of the maximum size are validated in slices, in time that is linear in their size. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { endpointsStrategy } from "./core/endpoints/strategy.ts";
import { limitRangeStrategy } from "./core/limitranges/strategy.ts";
import { newPodStatusStrategy, newPodStrategy } from "./core/pods/strategy.ts";
import { endpointSliceStrategy } from "./discovery/endpointslices/strategy.ts";
import type { Strategy, StrategyContext } from "./generic/strategy.ts";
import { runtimeClassStrategy } from "./node/runtimeclasses/strategy.ts";
import { csiNodeStrategy } from "./storage/csinodes/strategy.ts";
import { storageClassStrategy } from "./storage/storageclasses/strategy.ts";

const addresses = (count: number, from: number): string[] =>
  Array.from(
    { length: count },
    (_, i) => `2001:DB8:0:0:${((from + i) >> 16).toString(16)}::${((from + i) & 0xffff).toString(16)}`,
  );

const many = <T>(count: number, item: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => item(at));
const resources = Object.fromEntries(many(60_000, (at) => [`a.b/r${at}`, "1"]));
const tolerations = many(20_000, (at) => ({ key: `k${at}`, operator: "Exists" }));
const pod = (spec: object, status: object = {}, annotations: object = {}): object => ({
  metadata: { name: "p", annotations },
  spec: {
    containers: [{ name: "c", image: "i", imagePullPolicy: "Always", terminationMessagePolicy: "File" }],
    restartPolicy: "Never",
    dnsPolicy: "Default",
    ...spec,
  },
  status,
});
const statuses = (state: object): object => pod({}, { containerStatuses: many(20_000, (at) => ({ name: `c${at}`, state })) });
const allowPrivileged = false;
const longestTurnMs = 300;
const ctx = { featureEnabled: () => false } as unknown as StrategyContext;

for (const { name, strategy, object, current, errors: expected = 0 } of [
  {
    name: "a pod of 60,000 limits",
    strategy: newPodStrategy({ allowPrivileged }),
    object: pod({
      containers: [
        {
          ...{ name: "c", image: "i", imagePullPolicy: "Always", terminationMessagePolicy: "File" },
          resources: { limits: resources, requests: resources },
        },
      ],
    }),
  },
  {
    name: "an update of a pod of 20,000 tolerations",
    strategy: newPodStrategy({ allowPrivileged }),
    object: pod({ tolerations: tolerations.toReversed() }),
    current: pod({ tolerations }),
  },
  {
    name: "a status of 20,000 terminated containers",
    strategy: newPodStatusStrategy({ allowPrivileged }),
    object: statuses({ running: {} }),
    current: statuses({ terminated: {} }),
    errors: 20_000,
  },
  {
    name: "a status of 30,000 addresses",
    strategy: newPodStatusStrategy({ allowPrivileged }),
    object: pod({}, { podIPs: many(30_000, (at) => ({ ip: `10.0.${at >> 8}.${at & 0xff}` })) }),
    current: pod({}),
    errors: 1,
  },
  {
    name: "a pod of 2,000 profiles of 10,000 containers",
    strategy: newPodStrategy({ allowPrivileged }),
    object: pod(
      {
        containers: many(10_000, (at) => ({
          ...{ name: `c${at}`, image: "i", imagePullPolicy: "Always", terminationMessagePolicy: "File" },
        })),
      },
      {},
      Object.fromEntries(
        many(2_000, (at) => [`container.apparmor.security.beta.kubernetes.io/c${9_999 - at}`, "runtime/default"]),
      ),
    ),
  },
  {
    name: "a runtime class of 20,000 tolerations",
    strategy: runtimeClassStrategy,
    object: { metadata: {}, handler: "h", scheduling: { tolerations } },
  },
  {
    name: "limits of 60,000 resources",
    strategy: limitRangeStrategy,
    object: { metadata: {}, spec: { limits: [{ type: "Container", max: resources, min: resources, default: resources }] } },
  },
  {
    name: "an update of 20,000 CSI drivers",
    strategy: csiNodeStrategy,
    object: { metadata: {}, spec: { drivers: many(20_000, (at) => ({ name: `d${at}`, nodeID: "n" })) } },
    current: { metadata: {}, spec: { drivers: many(20_000, (at) => ({ name: `d${at}`, nodeID: "n" })) } },
  },
  {
    name: "a storage class of 5,000 topologies",
    strategy: storageClassStrategy,
    object: {
      ...{ metadata: {}, provisioner: "a.b/c", volumeBindingMode: "Immediate", reclaimPolicy: "Delete" },
      allowedTopologies: many(5_000, (at) => ({ matchLabelExpressions: [{ key: "k", values: [`v${at}`] }] })),
    },
  },
  {
    // All terms are equal: the number of pairs is quadratic.
    name: "a storage class of 20,000 equal topologies",
    strategy: storageClassStrategy,
    object: {
      ...{ metadata: {}, provisioner: "a.b/c", volumeBindingMode: "Immediate", reclaimPolicy: "Delete" },
      allowedTopologies: many(20_000, () => ({})),
    },
    errors: 20_999,
  },
  {
    name: "a slice of 100,000 IPv6 addresses",
    strategy: endpointSliceStrategy,
    object: {
      metadata: {},
      addressType: "IPv6",
      ports: [],
      endpoints: Array.from({ length: 1000 }, (_, i) => ({ addresses: addresses(100, i * 100) })),
    },
  },
  {
    name: "endpoints of 70,000 IPv6 addresses",
    strategy: endpointsStrategy,
    object: { metadata: {}, subsets: [{ addresses: addresses(70_000, 0).map((ip) => ({ ip })) }] },
  },
] as unknown as { name: string; strategy: Strategy; object: KubeObject; current?: KubeObject; errors?: number }[]) {
  test(`${name} takes no long turn`, async () => {
    const longest = await longestTurnOf(longestTurnMs, async () => {
      const steps = strategy.validateInSteps?.(object, current, ctx);
      const errors = steps === undefined ? atOnce(strategy, object, current) : await new Turns().run(steps);
      assert.equal(errors?.length, expected, JSON.stringify(errors?.slice(0, 3)));
    });
    assert.ok(longest < longestTurnMs, `a turn of ${longest} ms`);
  });
}

function atOnce(strategy: Strategy, object: KubeObject, current: KubeObject | undefined) {
  return current === undefined ? strategy.validate?.(object, ctx) : strategy.validateUpdate?.(object, current, ctx);
}

test("as many errors as values are reported", async () => {
  const subsets = [{ addresses: Array.from({ length: 80_000 }, () => ({ ip: "no" })) }];
  const steps = endpointsStrategy.validateInSteps?.({ metadata: {}, subsets }, undefined, {} as StrategyContext);
  assert.equal((await new Turns().run(steps as NonNullable<typeof steps>)).length, 160_000);
});
