import assert from "node:assert/strict";
import { test } from "node:test";
import { testSettings } from "../testing/node-network.ts";
import { type PortRules, portRules, type RuleSettings } from "./port-rules.ts";
import type { ServicePort } from "./service-port.ts";

const aPort = (change: Partial<ServicePort> = {}): ServicePort => ({
  ...{
    id: "default/web:http",
    protocol: "tcp",
    clusterIp: "10.96.0.10",
    port: 80,
    nodePort: undefined,
    affinitySeconds: undefined,
  },
  ...{ externalIps: [], loadBalancerIps: [], sourceRanges: [], internalPolicy: "Cluster", externalPolicy: "Cluster" },
  endpoints: ["10.77.0.1:8080", "10.77.0.2:8080", "10.77.1.1:8080"],
  localEndpoints: [],
  ...change,
});
const rulesOf = (change: Partial<ServicePort> = {}, settings: Partial<RuleSettings> = {}): PortRules =>
  portRules(aPort(change), { ...testSettings, ...settings });
const chainOf = ({ chains }: PortRules, kind: "S" | "L" | "X"): readonly string[] =>
  [...chains].find(([name]) => name.startsWith(`${kind}-`))?.[1] ?? [];
/** The rules in buckets, without what they have in common. */
const dispatched = ({ dispatch }: PortRules): string[] =>
  dispatch.flatMap(({ table, rules }) =>
    rules.map((rule) =>
      `${table} ${rule}`
        .replace(/ -p tcp -m tcp --dport 80 -m comment --comment "default\/web:http"/, "")
        .replace(/-[0-9a-f]{12}$/, ""),
    ),
  );

test("each endpoint gets the same share of connections", () => {
  const chances = chainOf(rulesOf(), "S").map((rule) => Number(/--probability (\S+)/.exec(rule)?.[1] ?? 1));
  let left = 1;
  for (const chance of chances) {
    assert.ok(Math.abs(left * chance - 1 / 3) < 1e-6, `${chances}`);
    left -= left * chance;
  }
});

test("with affinity a client's endpoint is looked up first, and each connection prolongs it", () => {
  const rules = chainOf(rulesOf({ affinitySeconds: 600 }), "S");
  const names = rules.map((rule) => / --name (\S+)/.exec(rule)?.[1]);
  assert.equal(rules.length, 6);
  for (const rule of rules.slice(0, 3)) assert.match(rule, / --update --seconds 600 --reap --rsource -j DNAT /);
  for (const rule of rules.slice(3)) assert.match(rule, / --set --rsource -j DNAT /);
  assert.deepEqual(names.slice(0, 3), names.slice(3), "a list for each endpoint");
  assert.equal(new Set(names).size, 3);
});

for (const { name, settings, want } of [
  { name: "clients outside of the cluster network", settings: {}, want: ["! -s 10.77.0.0/16 "] },
  { name: "no client, where the cluster network is not known", settings: { clusterCidr: undefined }, want: [] },
  { name: "all clients, where that is wanted", settings: { masqueradeAll: true }, want: [""] },
  {
    name: "all clients, where that is wanted and the cluster network is not known",
    settings: { masqueradeAll: true, clusterCidr: undefined },
    want: [""],
  },
] satisfies { name: string; settings: Partial<RuleSettings>; want: string[] }[])
  test(`connections to the cluster IP are masqueraded of ${name}`, () => {
    const marks = dispatched(rulesOf({}, settings)).filter((rule) => rule.endsWith("MARK-MASQ"));
    assert.deepEqual(
      marks,
      want.map((source) => `nat ${source}-d 10.96.0.10/32 -j COX-MARK-MASQ`),
    );
  });

test("internal policy Local applies to the cluster IP only: a node port leads to the endpoints of all nodes", () => {
  const rules = rulesOf({ internalPolicy: "Local", localEndpoints: ["10.77.0.1:8080"], nodePort: 30_080 });
  const chain = (kind: "S" | "L" | "X"): string => [...rules.chains.keys()].find((name) => name.startsWith(`${kind}-`)) ?? "none";
  assert.deepEqual(
    [chainOf(rules, "L").length, chainOf(rules, "S").length, chainOf(rules, "X").at(-1)],
    [1, 3, `-j COX-${chain("S")}`],
  );
  assert.ok(dispatched(rules).includes("nat -d 10.96.0.10/32 -j COX-L"));
});

test("source ranges admit their networks and the load balancer's own address, and drop all others", () => {
  const rules = rulesOf({ loadBalancerIps: ["192.0.2.1"], sourceRanges: ["10.1.0.0/16", "10.2.0.0/16"] });
  assert.deepEqual(
    dispatched(rules).filter((rule) => rule.includes("192.0.2.1")),
    [
      ...["10.1.0.0/16", "10.2.0.0/16", "192.0.2.1"].map((source) => `nat -s ${source} -d 192.0.2.1/32 -j COX-X`),
      "filter -d 192.0.2.1/32 -j DROP",
    ],
  );
});

test("with external policy Local pods of the cluster and the node itself reach all endpoints, others those of the node", () => {
  const local = { externalPolicy: "Local", localEndpoints: ["10.77.0.1:8080"], nodePort: 30_080 } as const;
  const shape = (rules: PortRules): string[] => chainOf(rules, "X").map((rule) => rule.replace(/-[0-9a-f]{12}$/, ""));
  const ofNode = ["-m addrtype --src-type LOCAL -j COX-MARK-MASQ", "-m addrtype --src-type LOCAL -j COX-S", "-j COX-L"];
  assert.deepEqual(shape(rulesOf(local)), ["-s 10.77.0.0/16 -j COX-S", ...ofNode]);
  assert.deepEqual(shape(rulesOf(local, { clusterCidr: undefined })), ofNode);
  assert.deepEqual(shape(rulesOf({ ...local, localEndpoints: [] })), ["-s 10.77.0.0/16 -j COX-S", ...ofNode.slice(0, 2)]);
});

for (const { name, change, settings = {}, want } of [
  {
    name: "rejected at every destination, without endpoints",
    change: { endpoints: [], externalIps: ["192.0.2.1"], loadBalancerIps: ["192.0.2.2"], nodePort: 30_080 },
    want: ["10.96.0.10/32 REJECT", "192.0.2.1/32 REJECT", "192.0.2.2/32 REJECT", "30080 REJECT"],
  },
  {
    name: "reset, over TCP and IPv6",
    change: { endpoints: [], clusterIp: "fd00::10" },
    settings: { family: "IPv6" },
    want: ["fd00::10/128 REJECT --reject-with tcp-reset"],
  },
  {
    name: "rejected, over UDP and IPv6",
    change: { endpoints: [], clusterIp: "fd00::10", protocol: "udp" },
    settings: { family: "IPv6" },
    want: ["fd00::10/128 REJECT"],
  },
  {
    name: "dropped from outside, where only endpoints on this node count and there are none",
    change: { externalPolicy: "Local", externalIps: ["192.0.2.1"], nodePort: 30_080 },
    want: ["192.0.2.1/32 DROP", "30080 DROP"],
  },
  {
    name: "rejected at the cluster IP, where only endpoints on this node count and there are none",
    change: { internalPolicy: "Local", nodePort: 30_080 },
    want: ["10.96.0.10/32 REJECT"],
  },
  {
    name: "sent on, else",
    change: { externalIps: ["192.0.2.1"], loadBalancerIps: ["192.0.2.2"], nodePort: 30_080 },
    want: [],
  },
] satisfies { name: string; change: Partial<ServicePort>; settings?: Partial<RuleSettings>; want: string[] }[])
  test(`connections are ${name}`, () => {
    const left = rulesOf(change, settings).dispatch.flatMap(({ table, rules }) => (table === "filter" ? rules : []));
    const short = left.map((rule) => {
      const [, address, port] = /^(?:-d (\S+))?.* --dport (\d+) /.exec(rule) ?? [];
      return `${address ?? port} ${rule.slice(rule.indexOf(" -j ") + 4)}`;
    });
    assert.deepEqual(short, want);
  });
