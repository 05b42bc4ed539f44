import assert from "node:assert/strict";
import { test } from "node:test";
import type { Endpoints } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { someEndpoints } from "@coxswain/apimachinery/testing/builders";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { type MirrorPlan, planningMirror } from "./mirror.ts";

const planMirror = (...args: Parameters<typeof planningMirror>): MirrorPlan => atOnce(planningMirror(...args));

const address = fc.constantFrom("192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1", "2001:db8::2").map((ip) => ({ ip }));
const ports = fc.uniqueArray(fc.record({ name: fc.constantFrom("a", "b"), port: fc.constantFrom(80, 81) }), {
  selector: ({ name }) => name,
  maxLength: 2,
});
const subset = fc.record({
  addresses: fc.array(address, { maxLength: 4 }),
  notReadyAddresses: fc.array(address, { maxLength: 2 }),
  ports,
});
const endpoints = fc
  .record({ subsets: fc.array(subset, { maxLength: 3 }), label: fc.constantFrom("x", "y") })
  .map(({ subsets, label }) => someEndpoints({ subsets, labels: { label } }));

/** The slices after a plan is applied. */
function after(existing: readonly EndpointSlice[], plan: MirrorPlan, round: number): EndpointSlice[] {
  const updated = new Map(plan.update.map((slice) => [slice.metadata.name, slice]));
  const gone = new Set(plan.delete.map(({ metadata }) => metadata.name));
  const kept = existing.filter(({ metadata }) => !gone.has(metadata.name));
  const made = plan.create.map((slice, i) => ({ ...slice, metadata: { ...slice.metadata, name: `s${round}-${i}` } }));
  return [...kept.map((slice) => updated.get(slice.metadata.name) ?? slice), ...made];
}

/** All addresses with their ports, across slices. */
const mirrored = (slices: readonly EndpointSlice[]): string[] =>
  slices.flatMap(({ endpoints: listed, ports: own }) =>
    listed.flatMap(({ addresses }) =>
      addresses.map((ip) => JSON.stringify([ip, own?.map(({ name, port }) => [name, port]).toSorted()])),
    ),
  );
const written = ({ subsets }: Endpoints): string[] =>
  (subsets ?? []).flatMap(({ addresses = [], notReadyAddresses = [], ports: own }) =>
    [...addresses, ...notReadyAddresses].map(({ ip }) =>
      JSON.stringify([ip, (own ?? []).map(({ name, port }) => [name, port]).toSorted()]),
    ),
  );

test("for random Endpoints, their slices contain each address once and are stable", () => {
  fc.assert(
    fc.property(fc.array(endpoints, { minLength: 1, maxLength: 4 }), (history) => {
      let slices: EndpointSlice[] = [];
      for (const [round, now] of history.entries()) {
        slices = after(slices, planMirror(now, slices, 1000), round);
        assert.deepEqual(mirrored(slices).toSorted(), [...new Set(written(now))].toSorted());
        const { create, update, delete: unwanted } = planMirror(now, slices, 1000);
        assert.deepEqual([create, update, unwanted], [[], [], []]);
      }
    }),
    { numRuns: 300 },
  );
});

test("the endpoints of slices that are deleted count as removed, and subsets with the same ports are one slice within the limit", () => {
  const of = (...ips: string[]) => ({ addresses: ips.map((ip) => ({ ip })), ports: [{ name: "a", port: 80 }] });
  const both = someEndpoints({ subsets: [of("192.0.2.1", "192.0.2.2"), of("192.0.2.3", "192.0.2.4")] });
  const { create, ...first } = planMirror(both, [], 3);
  assert.deepEqual(
    create.map(({ endpoints: listed }) => listed.flatMap(({ addresses }) => addresses)),
    [["192.0.2.1", "192.0.2.2", "192.0.2.3"]],
  );
  assert.equal(first.removed, 0);
  const [stored] = after([], { create, ...first }, 1);
  const none = planMirror(someEndpoints({ subsets: [] }), [stored!], 3);
  assert.deepEqual([none.delete.length, none.removed], [1, 3]);
});
