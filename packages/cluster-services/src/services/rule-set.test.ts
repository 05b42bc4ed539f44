import assert from "node:assert/strict";
import { test } from "node:test";
import { testSettings } from "../testing/node-network.ts";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";
import { addressBucket, nodePortBucket, type PortRules, portRules, portsOfBucket } from "./port-rules.ts";
import { RuleSet } from "./rule-set.ts";
import { servicePorts } from "./service-port.ts";

const rulesOf = (name: string, clusterIP: string, ...ips: readonly string[]): PortRules[] =>
  servicePorts(
    aService(name, { clusterIP }),
    [
      aSlice(
        name,
        ips.map((ip) => anEndpoint(ip, "n2")),
      ),
    ],
    { name: "n1", zone: undefined },
    "IPv4",
  ).map((port) => portRules(port, testSettings));

/** Takes what there is to write, as the kernel does. @returns the chains that it names */
function write(rules: RuleSet): string[] {
  const input = rules.pending();
  input?.written();
  return [...(input?.text ?? "").matchAll(/^:(\S+)/gm)].map((match) => match[1] as string);
}

test("a change of a Service writes its chains and its bucket, nothing else", () => {
  const rules = new RuleSet(testSettings);
  for (let i = 0; i < 600; i++) rules.set(`default/s${i}`, rulesOf(`s${i}`, `10.96.${i >> 8}.${i & 255}`, "10.0.0.1"));
  assert.ok(write(rules).length > 850);
  assert.deepEqual(write(rules), []);

  rules.set("default/s3", rulesOf("s3", "10.96.0.3", "10.0.0.2"));
  const chains = write(rules);
  assert.equal(chains.length, 1);
  assert.match(chains[0] ?? "", /^COX-S-[0-9a-f]{12}$/);

  rules.set("default/s3", rulesOf("s3", "10.96.0.3", "10.0.0.2"));
  assert.deepEqual(write(rules), [], "the same again");

  rules.set("default/s3", []);
  assert.deepEqual(write(rules).sort(), ["COX-I-3", ...chains], "its bucket without it, and its chain is removed");
});

test("the last Service of a bucket takes it along, and the first brings it", () => {
  const rules = new RuleSet(testSettings);
  rules.set("default/a", rulesOf("a", "10.96.0.7", "10.0.0.1"));
  write(rules);
  rules.set("default/a", []);
  const text = rules.pending()?.text ?? "";
  assert.match(text, /^-X COX-I-7$/m);
  assert.match(text, /^:COX-SERVICES - \[0:0\]$/m, "which led to it");
  assert.doesNotMatch(text, /^-A COX-SERVICES .*COX-I-7/m);
});

test("a change that is made while the kernel takes the rules is written next", () => {
  const rules = new RuleSet(testSettings);
  rules.set("default/a", rulesOf("a", "10.96.0.7", "10.0.0.1"));
  const input = rules.pending();
  rules.set("default/a", rulesOf("a", "10.96.0.7", "10.0.0.2"));
  input?.written();
  assert.match(rules.pending()?.text ?? "", /10\.0\.0\.2:8080/);
});

test("after a failure everything is pending still; chains of an earlier process are removed", () => {
  const rules = new RuleSet(testSettings);
  rules.set("default/a", rulesOf("a", "10.96.0.7", "10.0.0.1"));
  const first = rules.pending()?.text;
  assert.equal(rules.pending()?.text, first);
  write(rules);
  rules.forget(new Map([["nat", ["COX-SERVICES", "COX-S-gone"]]]));
  const text = rules.pending()?.text ?? "";
  assert.match(text, /^-X COX-S-gone$/m);
  assert.match(text, /^:COX-SERVICES /m);
  assert.match(text, /10\.0\.0\.1:8080/);
});

test("buckets: the last byte of an address, 64 node ports", () => {
  assert.deepEqual(["10.96.1.255", "fd00::1:2ff", "fd00::", "::ffff:1.2.3.4"].map(addressBucket), [255, 255, 0, 4]);
  assert.equal(portsOfBucket(nodePortBucket(30_053)), "30016:30079");
  assert.equal(portsOfBucket(nodePortBucket(65_535)), "65472:65535");
});

test("two ports of one address are in its bucket, and both leave it", () => {
  const rules = new RuleSet(testSettings);
  const ports = [80, 443].flatMap((port) =>
    servicePorts(
      aService("a", { clusterIP: "10.96.0.7", ports: [{ port, protocol: "TCP" }] }),
      [aSlice("a", [anEndpoint("10.0.0.1", "n2")])],
      { name: "n1", zone: undefined },
      "IPv4",
    ).map((one) => portRules(one, testSettings)),
  );
  rules.set("default/a", ports);
  const bucket = (): string[] => (rules.pending()?.text ?? "").split("\n").filter((line) => line.startsWith("-A COX-I-7 "));
  assert.deepEqual(
    [80, 443].map((port) => bucket().filter((line) => line.includes(`--dport ${port} `)).length > 0),
    [true, true],
  );
  rules.set("default/a", ports.slice(1));
  assert.deepEqual(
    [80, 443].map((port) => bucket().filter((line) => line.includes(`--dport ${port} `)).length > 0),
    [false, true],
  );
});

test("a chain that is wanted again while the kernel removes it is written next", () => {
  const rules = new RuleSet(testSettings);
  rules.set("default/a", rulesOf("a", "10.96.0.7", "10.0.0.1"));
  write(rules);
  rules.set("default/a", []);
  const removal = rules.pending();
  rules.set("default/a", rulesOf("a", "10.96.0.7", "10.0.0.1"));
  removal?.written();
  assert.match(rules.pending()?.text ?? "", /-A COX-S-[0-9a-f]+ .*10\.0\.0\.1:8080/);
});

test("the number of rules is that of the text, also after a Service was replaced and removed", () => {
  const rules = new RuleSet(testSettings);
  const before = rules.count("nat");
  rules.set("default/a", rulesOf("a", "10.96.0.7", "10.0.0.1"));
  const text = rules.pending()?.text.split("*filter")[0] ?? "";
  assert.equal(rules.count("nat"), text.match(/^-A /gm)?.length);
  rules.set("default/a", rulesOf("a", "10.96.0.7", "10.0.0.2"));
  assert.equal(rules.count("nat"), text.match(/^-A /gm)?.length);
  // Two ports at one address are in one bucket.
  rules.set("default/a", [...rulesOf("a", "10.96.0.7", "10.0.0.1"), ...rulesOf("b", "10.96.0.7", "10.0.0.2")]);
  const both = rules.pending()?.text.split("*filter")[0] ?? "";
  assert.equal(rules.count("nat"), both.match(/^-A /gm)?.length);
  rules.set("default/a", []);
  assert.equal(rules.count("nat"), before);
});

const nodePortJumps = (settings: Partial<typeof testSettings>): string[] =>
  (new RuleSet({ ...testSettings, ...settings }).pending()?.text ?? "")
    .split("\n")
    .flatMap((line) => /^-A COX-SERVICES (.*) -j COX-NODEPORTS$/.exec(line)?.[1] ?? []);
const local = "-m addrtype --dst-type LOCAL";

for (const { name, settings, want } of [
  { name: "all, loopback too", settings: {}, want: [local] },
  { name: "all but loopback, where that is off", settings: { localhostNodePorts: false }, want: [`! -d 127.0.0.0/8 ${local}`] },
  { name: "all of IPv6 but loopback", settings: { family: "IPv6" }, want: [`! -d ::1/128 ${local}`] },
  {
    name: "those in the networks of the family",
    settings: { nodePortNetworks: ["10.0.0.0/8", "fd00::/8", "192.0.2.0/24"] },
    want: [`-d 10.0.0.0/8 ${local}`, `-d 192.0.2.0/24 ${local}`],
  },
  {
    name: "those in the networks of IPv6",
    settings: { family: "IPv6", nodePortNetworks: ["10.0.0.0/8", "fd00::/8"] },
    want: [`-d fd00::/8 ${local}`],
  },
  { name: "none, where all networks are of the other family", settings: { nodePortNetworks: ["fd00::/8"] }, want: [] },
] as const)
  test(`addresses with node ports: ${name}`, () => assert.deepEqual(nodePortJumps(settings), want));

test("node ports lead to their bucket for each protocol, and connections from elsewhere to loopback are dropped", () => {
  const rules = new RuleSet(testSettings);
  const ports = [{ port: 80, protocol: "SCTP" as const, nodePort: 30_000 }];
  const slices = [aSlice("a", [anEndpoint("10.0.0.1", "n2")])];
  const service = aService("a", { type: "NodePort", clusterIP: "10.96.0.7", ports });
  rules.set(
    "default/a",
    servicePorts(service, slices, { name: "n1", zone: undefined }, "IPv4").map((port) => portRules(port, testSettings)),
  );
  const text = rules.pending()?.text ?? "";
  for (const protocol of ["tcp", "udp", "sctp"])
    assert.match(text, new RegExp(`^-A COX-NODEPORTS -p ${protocol} -m ${protocol} --dport 29952:30015 -j COX-P-468$`, "m"));
  assert.match(text, /^-A COX-FIREWALL ! -s 127\.0\.0\.0\/8 -d 127\.0\.0\.0\/8 .* -j DROP$/m);
  const without = new RuleSet({ ...testSettings, localhostNodePorts: false }).pending()?.text ?? "";
  assert.doesNotMatch(without, /^-A COX-FIREWALL/m);
});

test("the highest bit of the mark is a positive number; invalid packets are dropped before others are accepted", () => {
  const text = new RuleSet({ ...testSettings, masqueradeBit: 31 }).pending()?.text ?? "";
  assert.match(text, /^-A COX-MARK-MASQ -j MARK --set-xmark 0x80000000\/0x80000000$/m);
  assert.match(text, /^-A COX-FORWARD -m conntrack --ctstate INVALID -j DROP\n-A COX-FORWARD -m mark --mark 0x80000000/m);
});

test("marked connections are masqueraded once, and those of pods to themselves before", () => {
  const text = new RuleSet({ ...testSettings, masqueradeBit: 14 }).pending()?.text ?? "";
  const chain = text.split("\n").filter((line) => line.startsWith("-A COX-POSTROUTING "));
  assert.deepEqual(
    chain.map((line) => line.slice("-A COX-POSTROUTING ".length)),
    [
      "-m conntrack --ctstate DNAT -j COX-HAIRPIN",
      "-m mark ! --mark 0x4000/0x4000 -j RETURN",
      "-j MARK --set-xmark 0x0/0x4000",
      "-j MASQUERADE --random-fully",
    ],
  );
});

test("the kernel's own chains lead to those of Services, those of the filter for new connections only", () => {
  const fresh = "-m conntrack --ctstate NEW";
  assert.deepEqual(
    new RuleSet(testSettings).jumps.map(({ table, from, rule, behind }) => [`${table} ${from} ${rule}`, behind]),
    [
      "nat PREROUTING -j COX-SERVICES",
      "nat OUTPUT -j COX-SERVICES",
      "nat POSTROUTING -j COX-POSTROUTING",
      "filter INPUT -j COX-FIREWALL",
      `filter INPUT ${fresh} -j COX-FILTER`,
      "filter FORWARD -j COX-FORWARD",
      `filter FORWARD ${fresh} -j COX-FILTER`,
      `filter OUTPUT ${fresh} -j COX-FILTER`,
    ].map((jump) => [jump, undefined]),
  );
});
