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
