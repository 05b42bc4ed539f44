import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { aNode } from "@coxswain/apimachinery/testing/builders";
import { withHints } from "./hints.ts";
import { changesShares, zoneShares } from "./zones.ts";

/**
 * `a a>b b! ?`: an endpoint in zone a without hint, one in a with a hint for b, one in b that is not ready, one
 * without a zone.
 */
function slice(name: string, text: string, addressType = "IPv4"): EndpointSlice {
  const endpoints = text.split(" ").map((word, i) => {
    const [, zone = "", hint] = /^(\w|\?)(?:>(\w))?!?$/.exec(word) ?? [];
    return {
      addresses: [`10.0.0.${i}`],
      conditions: { ready: !word.endsWith("!") },
      ...(zone !== "?" && { zone }),
      ...(hint !== undefined && { hints: { forZones: [{ name: hint }] } }),
    };
  });
  return { metadata: { name }, addressType, endpoints, ports: [] };
}
const shown = ({ metadata, endpoints }: EndpointSlice): string => {
  const words = endpoints.map(({ zone = "?", hints, conditions }) => {
    const hint = hints?.forZones?.map(({ name }) => name).join();
    return `${zone}${hint === undefined ? "" : `>${hint}`}${conditions?.ready ? "" : "!"}`;
  });
  return `${metadata.name}: ${words.join(" ")}`;
};
const even = new Map([
  ["a", 0.5],
  ["b", 0.5],
]);

for (const { name, shares = even, create = [], update = [], existing = [], want } of [
  { name: "endpoints are for their own zone", create: [slice("s", "a a b b")], want: ["s: a>a a>a b>b b>b"] },
  { name: "a zone that has too many lends", create: [slice("s", "a a a b")], want: ["s: a>b a>a a>a b>b"] },
  { name: "too few for every zone to have its share: none has hints", create: [slice("s", "a a b")], want: ["s: a a b"] },
  {
    name: "each zone may get a fifth more than its share, not a fourth",
    create: [slice("s", "a a a b b"), slice("t", "a b", "IPv6")],
    want: ["s: a a a b b", "t: a>a b>b"],
  },
  {
    name: "a zone with a share of less than one endpoint keeps its only one",
    shares: new Map([
      ["a", 0.8],
      ["b", 0.05],
      ["c", 0.05],
      ["d", 0.1],
    ]),
    create: [slice("s", "a a a a a a a b c d")],
    want: ["s: a>a a>a a>a a>a a>a a>a a>a b>b c>c d>d"],
  },
  { name: "one too many is no reason to lend", create: [slice("s", "a a a a b b b")], want: ["s: a>a a>a a>a a>a b>b b>b b>b"] },
  { name: "a zone without nodes gives all it has", create: [slice("s", "c c a b")], want: ["s: c>a c>b a>a b>b"] },
  {
    name: "shares count, not zones",
    shares: new Map([
      ["a", 0.75],
      ["b", 0.25],
    ]),
    create: [slice("s", "a a b b")],
    want: ["s: a>a a>a b>a b>b"],
  },
  {
    name: "a zone with a whole endpoint too many lends it to one that lacks half of one",
    shares: new Map([
      ["a", 0.5],
      ["b", 0.25],
      ["c", 0.25],
    ]),
    create: [slice("s", [...Array(12).fill("a"), ...Array(5).fill("b"), ...Array(5).fill("c")].join(" "))],
    want: [["s: a>b", ...Array(11).fill("a>a"), ...Array(5).fill("b>b"), ...Array(5).fill("c>c")].join(" ")],
  },
  { name: "an unready endpoint has no hint and does not count", create: [slice("s", "a! b b")], want: ["s: a! b>a b>b"] },
  {
    name: "fewer endpoints than zones: none has hints",
    update: [slice("s", "a>a")],
    existing: [slice("s", "a>a")],
    want: ["s: a"],
  },
  { name: "an endpoint that is nowhere: none has hints", create: [slice("s", "a b ?")], want: ["s: a b ?"] },
  { name: "slices whose hints still do are not written", existing: [slice("s", "a>a b>b")], want: [] },
  { name: "a slice without hints is written for them", existing: [slice("s", "a b")], want: ["s: a>a b>b"] },
  { name: "a slice with hints for a zone that is gone is written", existing: [slice("s", "a>c b>b")], want: ["s: a>a b>b"] },
  {
    name: "a slice that gives a zone more than it may have is written",
    existing: [slice("s", "a>a a>a a>a a>a")],
    want: ["s: a>b a>b a>a a>a"],
  },
  {
    name: "hints in other slices count",
    create: [slice("t", "a a")],
    existing: [slice("s", "a>a b>a")],
    want: ["t: a>b a>b"],
  },
  {
    name: "each address type has separate hints",
    create: [slice("s", "a b"), slice("t", "a", "IPv6")],
    want: ["s: a>a b>b", "t: a"],
  },
  {
    name: "a Service without hints loses existing ones",
    shares: undefined,
    existing: [slice("s", "a>a b>b"), slice("t", "a")],
    want: ["s: a b"],
  },
] as {
  name: string;
  shares?: ReadonlyMap<string, number> | undefined;
  create?: EndpointSlice[];
  update?: EndpointSlice[];
  existing?: EndpointSlice[];
  want: string[];
}[]) {
  test(`hints: ${name}`, () => {
    const wanted = name.startsWith("who does not") ? undefined : shares;
    const before = JSON.stringify([create, update, existing]);
    const plan = withHints({ create, update, delete: [] }, existing, wanted);
    assert.deepEqual([...plan.create, ...plan.update].map(shown), want);
    assert.equal(JSON.stringify([create, update, existing]), before, "what was given is left as it was");
  });
}

test("an endpoint that is for two zones counts in both", () => {
  const both = slice("s", "a a b>b b>b");
  const endpoints = both.endpoints.map((one) => ({ hints: { forZones: [{ name: "a" }, { name: "b" }] }, ...one }));
  const plan = withHints({ create: [], update: [], delete: [] }, [{ ...both, endpoints }], even);
  assert.deepEqual(plan.update.map(shown), ["s: a>a a>a b>b b>b"]);
});

test("the endpoints of a slice that is deleted do not count", () => {
  const gone = slice("gone", "a>a a>a");
  const plan = withHints({ create: [slice("s", "a b")], update: [], delete: [gone] }, [gone], even);
  assert.deepEqual([plan.create.map(shown), plan.update, plan.delete], [["s: a>a b>b"], [], [gone]]);
});

const inZone = (
  name: string,
  zone: string | undefined,
  options: { cpu?: string; ready?: boolean; labels?: object } = {},
): Node => {
  const labels = { ...(zone !== undefined && { "topology.kubernetes.io/zone": zone }), ...options.labels };
  const node = aNode({ name, labels, ready: options.ready ?? true });
  return { ...node, status: { ...node.status, allocatable: { cpu: options.cpu ?? "1" } } };
};
const other = [inZone("x", "a"), inZone("y", "b", { cpu: "3" })];

for (const { name, nodes, want } of [
  { name: "zones share by their CPU", nodes: other, want: { a: 0.25, b: 0.75 } },
  { name: "one zone is none", nodes: [inZone("x", "a"), inZone("y", "a")], want: undefined },
  { name: "a node without a zone spoils all", nodes: [...other, inZone("z", undefined)], want: undefined },
  { name: "a node without CPU spoils all", nodes: [...other, inZone("z", "a", { cpu: "0" })], want: undefined },
  {
    name: "nodes that are not ready do not count",
    nodes: [...other, inZone("z", undefined, { ready: false })],
    want: { a: 0.25, b: 0.75 },
  },
  {
    name: "nodes of the control plane do not count",
    nodes: [...other, inZone("z", "a", { labels: { "node-role.kubernetes.io/master": "" } })],
    want: { a: 0.25, b: 0.75 },
  },
]) {
  test(`shares: ${name}`, () => {
    const shares = zoneShares(nodes);
    assert.deepEqual(shares && Object.fromEntries(shares), want);
  });
}

for (const { name, now, want } of [
  { name: "nothing", now: inZone("n", "a"), want: false },
  { name: "the way in which its CPU is written", now: inZone("n", "a", { cpu: "1000m" }), want: false },
  { name: "another label", now: inZone("n", "a", { labels: { other: "x" } }), want: false },
  { name: "its zone", now: inZone("n", "b"), want: true },
  { name: "its CPU", now: inZone("n", "a", { cpu: "4001m" }), want: true },
  { name: "its readiness", now: inZone("n", "a", { ready: false }), want: true },
  { name: "its role to master", now: inZone("n", "a", { labels: { "node-role.kubernetes.io/master": "" } }), want: true },
  { name: "its role", now: inZone("n", "a", { labels: { "node-role.kubernetes.io/control-plane": "" } }), want: true },
]) {
  test(`a node that changes ${name} ${want ? "may change" : "does not change"} the shares of the zones`, () => {
    assert.equal(changesShares(inZone("n", "a"), now), want);
    assert.equal(changesShares(now, inZone("n", "a")), want);
  });
}
