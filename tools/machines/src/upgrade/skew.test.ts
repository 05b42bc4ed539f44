import assert from "node:assert/strict";
import { test } from "node:test";
import { controlPlaneFaults, kubeletFaults, machineFaults, minorOf } from "./skew.ts";

for (const { name, target = "v1.23.1", servers, kubelets = {}, want } of [
  { name: "the next version", servers: { own: "v1.22.3", other: "v1.22.3" }, kubelets: { n: "v1.22.3" }, want: [] },
  {
    name: "a version back",
    target: "v1.22.0",
    servers: { own: "v1.23.0", other: "v1.23.0" },
    kubelets: { n: "v1.22.0" },
    want: [],
  },
  { name: "the same minor version", servers: { own: "v1.23.9" }, kubelets: { n: "v1.23.9" }, want: [] },
  { name: "its own server is away", servers: { own: undefined }, want: [] },
  { name: "a version left out", servers: { own: "v1.21.0" }, want: [/not next to v1\.21\.0: go by way of 1\.22/] },
  { name: "two versions back", target: "v1.21.0", servers: { own: "v1.23.0" }, want: [/go by way of 1\.22/] },
  {
    name: "another server too old",
    servers: { own: "v1.22.0", other: "v1.21.9" },
    want: [/API server other is v1\.21\.9.*upgrade its machine/],
  },
  { name: "another server away", servers: { own: "v1.22.0", other: undefined }, want: [/API server other does not answer/] },
  { name: "kubelets two versions older", servers: { own: "v1.22.0" }, kubelets: { n: "v1.21.0" }, want: [] },
  {
    name: "kubelets three versions older",
    servers: { own: "v1.22.0" },
    kubelets: { n: "v1.20.0" },
    want: [/kubelet of n is v1\.20\.0, more than 2/],
  },
  {
    name: "a newer kubelet",
    target: "v1.22.0",
    servers: { own: "v1.23.0" },
    kubelets: { n: "v1.23.0", m: "v1.22.0" },
    want: [/kubelet of n.*newer/],
  },
  { name: "a kubelet of no version", servers: { own: "v1.23.0" }, kubelets: { n: "unknown" }, want: [/kubelet of n is unknown/] },
  { name: "no version", target: "v2.0.0", servers: {}, want: [/v2\.0\.0 is not a version of Kubernetes 1/] },
] as {
  name: string;
  target?: string;
  servers: Record<string, string | undefined>;
  kubelets?: Record<string, string>;
  want: RegExp[];
}[])
  test(`control plane: ${name}`, () => matches(controlPlaneFaults(target, "own", { apiServers: servers, kubelets }), want));

for (const { target, servers, want } of [
  { target: "v1.23.1", servers: { a: "v1.23.0", b: undefined }, want: [] },
  { target: "v1.21.0", servers: { a: "v1.23.0" }, want: [] },
  { target: "v1.23.0", servers: { a: "v1.23.0", b: "v1.22.0" }, want: [/API server b is v1\.22\.0, older/] },
  { target: "v1.20.0", servers: { a: "v1.23.0" }, want: [/more than 2 versions newer/] },
] as const)
  test(`kubelet ${target} with API servers ${Object.values(servers).join()}`, () =>
    matches(kubeletFaults(target, { apiServers: servers, kubelets: {} }), want));

const ours = "v1.23.0";
const cp = (version: string, others: Readonly<Record<string, string>> = {}) => ({ cp1: version, ...others });
for (const { name, target = ours, own, usesOwn = true, apiServers, kubelets = {}, want } of [
  { name: "1.22 to ours, the first of three", own: "cp1", apiServers: cp("v1.22.17", { cp2: "v1.22.17", cp3: "v1.22.17" }) },
  {
    name: "1.22 to ours, the first of two behind a load balancer",
    own: "cp1",
    usesOwn: false,
    apiServers: cp("v1.22.17", { cp2: "v1.22.17" }),
    want: [/API server cp2 is v1\.22\.17, older than v1\.23\.0/],
  },
  { name: "1.22 to ours, the last of three", own: "cp1", apiServers: cp("v1.22.17", { cp2: ours, cp3: ours }) },
  {
    name: "1.22 to ours with kubelets of 1.22 and 1.21",
    own: "cp1",
    apiServers: cp("v1.22.17"),
    kubelets: { cp1: "v1.22.17", n1: "v1.21.14" },
  },
  { name: "a node of 1.22 under ours", apiServers: cp(ours, { cp2: ours }), kubelets: {} },
  {
    name: "1.23 to ours",
    own: "cp1",
    apiServers: cp("v1.23.17", { cp2: "v1.23.17" }),
    kubelets: { cp1: "v1.23.17", n1: "v1.23.17" },
  },
  { name: "ours back to 1.23", target: "v1.23.17", own: "cp1", apiServers: cp(ours), kubelets: { cp1: ours, n1: ours } },
  { name: "ours back to 1.22, nodes first", target: "v1.22.17", apiServers: cp(ours, { cp2: ours }) },
  {
    name: "ours back to 1.22, then the control plane",
    target: "v1.22.17",
    own: "cp1",
    apiServers: cp(ours, { cp2: "v1.22.17" }),
    kubelets: { cp1: "v1.22.17", n1: "v1.22.17" },
  },
  {
    name: "ours back to 1.22, the control plane before its nodes",
    target: "v1.22.17",
    own: "cp1",
    apiServers: cp(ours),
    kubelets: { n1: ours },
    want: [/kubelet of n1 is v1\.23\.0, newer than v1\.22\.17: downgrade that node first/],
  },
  {
    name: "a node of 1.22 to ours before its control plane",
    apiServers: cp("v1.22.17"),
    want: [/cp1 is v1\.22\.17, older than v1\.23\.0: upgrade the control plane first/],
  },
  {
    name: "1.20 to ours",
    own: "cp1",
    apiServers: cp("v1.20.2"),
    kubelets: { n1: "v1.20.2" },
    want: [
      /v1\.23\.0 is not next to v1\.20\.2: go by way of 1\.21/,
      /kubelet of n1 is v1\.20\.2, more than 2 versions older than v1\.23\.0: upgrade that node first/,
    ],
  },
] as {
  name: string;
  target?: string;
  own?: string;
  usesOwn?: boolean;
  apiServers: Record<string, string>;
  kubelets?: Record<string, string>;
  want?: RegExp[];
}[])
  test(`plan: ${name}`, () => matches(machineFaults(target, { own, usesOwn }, { apiServers, kubelets }), want ?? []));

test("versions are read as Kubernetes and its builders write them", () => {
  assert.deepEqual(["v1.23.0", "1.22", "v1.21.14-gke.700", "v1.9.0-alpha.1+abc", "v2.1.0", "x", "v1.x"].map(minorOf), [
    23,
    22,
    21,
    9,
    undefined,
    undefined,
    undefined,
  ]);
});

function matches(found: readonly string[], want: readonly RegExp[]): void {
  assert.equal(found.length, want.length, found.join("\n"));
  for (const [i, pattern] of want.entries()) assert.match(found[i] as string, pattern);
}
