import assert from "node:assert/strict";
import { test } from "node:test";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { strategiesOf } from "../../../testing/kind-rules.ts";
import type { StrategyContext } from "../../generic/strategy.ts";

const { strategy: endpointSliceStrategy } = strategiesOf<EndpointSlice>("endpointslices.discovery.k8s.io");

const aSlice = (fields: Partial<EndpointSlice> = {}, metadata: object = {}): EndpointSlice => ({
  metadata: { name: "s", generation: 3, ...metadata },
  addressType: "IPv4",
  endpoints: [{ addresses: ["10.0.0.1"] }, { addresses: ["10.0.0.2"] }],
  ports: [{ port: 80 }],
  ...fields,
});
const contextOf = (enabled: boolean) => ({ featureEnabled: () => enabled }) as unknown as StrategyContext;

for (const { name, next, want } of [
  { name: "nothing", next: aSlice(), want: 3 },
  { name: "annotations", next: aSlice({}, { annotations: { a: "b" } }), want: 3 },
  { name: "labels", next: aSlice({}, { labels: { a: "b" } }), want: 4 },
  { name: "ports", next: aSlice({ ports: [] }), want: 4 },
  { name: "endpoints", next: aSlice({ endpoints: [] }), want: 4 },
  { name: "nothing, whatever generation the client says", next: aSlice({}, { generation: 9 }), want: 3 },
]) {
  test(`an update of ${name} makes generation 3 a generation ${want}`, () => {
    endpointSliceStrategy.prepareForUpdate?.(next, aSlice(), contextOf(true));
    assert.equal(next.metadata.generation, want);
  });
}

const hints = { forZones: [{ name: "a" }] };
const hinted = (at: number) =>
  aSlice({ endpoints: [0, 1].map((i) => ({ addresses: [`10.0.0.${i}`], ...(i === at && { hints }) })) });
const hintsOf = (slice: EndpointSlice) => slice.endpoints.filter((endpoint) => endpoint.hints).length;

test("hints are taken with the gate TopologyAwareHints, and without it where any endpoint had some before", () => {
  for (const { enabled, current, want } of [
    { enabled: true, current: aSlice(), want: 1 },
    { enabled: false, current: aSlice(), want: 0 },
    { enabled: false, current: hinted(0), want: 1 },
    { enabled: false, current: hinted(1), want: 1 },
  ]) {
    const next = hinted(1);
    endpointSliceStrategy.prepareForUpdate?.(next, current, contextOf(enabled));
    assert.equal(hintsOf(next), want);
  }
  for (const enabled of [true, false]) {
    const created = hinted(0);
    endpointSliceStrategy.prepareForCreate?.(created, contextOf(enabled));
    assert.deepEqual([hintsOf(created), created.metadata.generation], [enabled ? 1 : 0, 1]);
  }
});

const topology = (hostname: string, nodeName?: string) => ({
  addresses: ["10.0.0.1"],
  deprecatedTopology: { "kubernetes.io/hostname": hostname, rack: "r" },
  ...(nodeName !== undefined && { nodeName }),
});
const inVersion = (requestVersion: string | undefined) =>
  ({ featureEnabled: () => true, requestVersion }) as unknown as StrategyContext;

test("only a request in v1beta1 creates endpoints with a topology", () => {
  for (const [version, want] of [
    ["v1", { addresses: ["10.0.0.1"] }],
    ["v1beta1", topology("n")],
    [undefined, topology("n")],
  ] as const) {
    const next = aSlice({ endpoints: [topology("n")] });
    endpointSliceStrategy.prepareForCreate?.(next, inVersion(version));
    assert.deepEqual(next.endpoints, [want]);
  }
});

test("a changed list of endpoints loses its topology in v1, but not the nodes that the old topology named", () => {
  const old = [topology("n"), topology("_")];
  const updated = (endpoints: EndpointSlice["endpoints"], version: string): EndpointSlice["endpoints"] => {
    const next = aSlice({ endpoints: structuredClone(endpoints) });
    endpointSliceStrategy.prepareForUpdate?.(next, aSlice({ endpoints: structuredClone(old) }), inVersion(version));
    return next.endpoints;
  };
  const changed = [topology("n"), topology("n", "m"), topology("_"), topology("other"), { addresses: ["10.0.0.2"] }];
  assert.deepEqual(updated(old, "v1"), old, "nothing changed");
  assert.deepEqual(updated(changed, "v1beta1"), changed);
  assert.deepEqual(
    updated(changed, "v1").map(({ nodeName, deprecatedTopology }) => [nodeName, deprecatedTopology]),
    [
      ["n", undefined],
      ["m", undefined],
      [undefined, undefined],
      [undefined, undefined],
      [undefined, undefined],
    ],
  );
});
