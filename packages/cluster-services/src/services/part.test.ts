/** The part's wiring, over a fake API server and a machine that only records. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Node, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { endpointSlices, nodes, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newUnlimitedTurns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { freePort } from "@coxswain/apimachinery/testing/etcd";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { listening } from "@coxswain/apimachinery/testing/listening";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { ServicesFlags } from "../flags.ts";
import { ProgramError } from "../host/run-program.ts";
import type { PartContext } from "../part.ts";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";
import { settingsOf, startServices } from "./part.ts";

const flags = {
  ...{ "iptables-chain-prefix": "COX-", "iptables-masquerade-bit": 14, "masquerade-all": false },
  ...{ "iptables-localhost-nodeports": true, "iptables-sync-period": 30_000, "nodeport-addresses": [] as string[] },
  ...{ "cluster-cidr": ["fd00:77::/64", "10.77.0.0/16"], "healthz-bind-address": "", "metrics-bind-address": "" },
  ...{ "conntrack-tcp-timeout-established": 0, "conntrack-tcp-timeout-close-wait": 0 },
} as unknown as ServicesFlags;

const aNode = (zone: string): Node => ({
  metadata: { name: "n1", labels: { "topology.kubernetes.io/zone": zone } },
  spec: { podCIDRs: ["10.77.1.0/24", "fd00:77:1::/80"] },
});

async function start(
  t: TestContext,
  {
    bridgeModule = true,
    ipv6 = true,
    refuses = "",
    fails = "",
    own = {} as Partial<ServicesFlags>,
    objects = [] as Service[],
  } = {},
) {
  const root = mkdtempSync(join(tmpdir(), "cox-services-"));
  t.after(() => rmSync(root, { recursive: true }));
  const files = {
    "proc/sys/net/ipv4/ip_forward": "1",
    "proc/sys/net/ipv4/conf/all/route_localnet": "1",
    ...(ipv6 && { "proc/net/if_inet6": "" }),
    ...(bridgeModule && { "proc/sys/net/bridge/bridge-nf-call-iptables": "1" }),
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  const clock = newFakeClock();
  const client = newFakeClient({ clock, objects: [[nodes, aNode("a")], ...objects.map((one) => [services, one] as const)] });
  const informers = newInformerFactory(client, { clock, log: discardLogger });
  const ending = new AbortController();
  /** By program: what was written. */
  const written = { "iptables-restore": "", "ip6tables-restore": "" };
  const run = async (program: string, _: readonly string[], input = ""): Promise<string> => {
    if (program === fails) throw new Error("xtables lock");
    if (refuses !== "" && input.includes(refuses)) throw new ProgramError("iptables-restore: unknown option", 2);
    if (program in written) written[program as keyof typeof written] += input;
    return "";
  };
  const failures: unknown[] = [];
  const events: string[] = [];
  const context = {
    ...{
      nodeName: "n1",
      flags: { ...flags, ...own },
      client,
      informers,
      clock,
      log: discardLogger,
      metrics: newMetricsRegistry(),
    },
    turns: newUnlimitedTurns(),
    recorder: {
      event: ({ metadata }: Service, type: string, reason: string, message: string) =>
        void events.push(`${metadata.name} ${type} ${reason} ${message}`),
      flush: async () => {},
    },
    signal: ending.signal,
    fail: (err: unknown) => void failures.push(err),
  } as unknown as PartContext;
  informers.start(ending.signal);
  const part = await startServices(context, { run, root });
  const stop = async (): Promise<void> => {
    ending.abort(new Error("the part ends"));
    await part.stop?.();
  };
  t.after(stop);
  const take = async (program: keyof typeof written): Promise<string> => {
    await clock.advance(1_000);
    const text = written[program];
    written[program] = "";
    return text;
  };
  return { client, clock, part, stop, take, failures, events };
}

const dual = (name: string): Service => aService(name, { clusterIP: "10.96.0.10", clusterIPs: ["10.96.0.10", "fd00:96::10"] });

test("each IP family has the rules of its addresses and its cluster network; changes and the node's zone are followed", async (t) => {
  const { client, part, take, failures } = await start(t, { objects: [dual("web")] });
  const four = await take("iptables-restore");
  const six = await take("ip6tables-restore");
  assert.match(four, /-d 10\.96\.0\.10\/32 .*-j REJECT/);
  assert.match(six, /-d fd00:96::10\/128 .*-j REJECT/);
  assert.doesNotMatch(`${four}${six}`, /-A COX-HAIRPIN/, "packets of the bridge pass the rules");
  const hinted = (ip: string, zone: string) => anEndpoint(ip, "n2", { hints: { forZones: [{ name: zone }] } });
  const service = dual("web");
  service.metadata.annotations = { "service.kubernetes.io/topology-aware-hints": "auto" };
  client.put(services, service);
  client.put(endpointSlices, aSlice("web", [hinted("10.77.2.1", "a"), hinted("10.77.2.2", "b")]));
  const changed = await take("iptables-restore");
  assert.match(changed, /! -s 10\.77\.0\.0\/16 -d 10\.96\.0\.10\/32/);
  assert.match(changed, /--to-destination 10\.77\.2\.1:8080/);
  assert.doesNotMatch(changed, /10\.77\.2\.2/);
  client.put(nodes, aNode("b"));
  assert.match(await take("iptables-restore"), /--to-destination 10\.77\.2\.2:8080/);
  client.remove(services, "default/web");
  assert.match(await take("iptables-restore"), /-X COX-I-10\n/);
  await part.check?.();
  assert.deepEqual(failures, []);
});

test("where packets of a bridge bypass the rules, pods of the node are masqueraded among each other, by family", async (t) => {
  const { take } = await start(t, { bridgeModule: false, objects: [dual("web")] });
  const four = await take("iptables-restore");
  assert.match(four, /-A COX-HAIRPIN -s 10\.77\.1\.0\/24 -d 10\.77\.1\.0\/24 -j MASQUERADE\n/);
  assert.doesNotMatch(four, /fd00/);
  assert.match(await take("ip6tables-restore"), /-A COX-HAIRPIN -s fd00:77:1::\/80 /);
});

test("on a machine without IPv6 there are rules of IPv4 only", async (t) => {
  const { take, part } = await start(t, { ipv6: false, objects: [dual("web")] });
  assert.match(await take("iptables-restore"), /-d 10\.96\.0\.10\/32 /);
  assert.equal(await take("ip6tables-restore"), "");
  await part.check?.();
});

test("a Service whose rules the kernel refuses is told so, of each family; one that is gone is not", async (t) => {
  const { client, events, take } = await start(t, { refuses: "10.96.0.10", objects: [dual("web")] });
  await take("iptables-restore");
  assert.deepEqual(events, ["web Warning RulesRefused on node n1: iptables-restore: unknown option"]);
  client.remove(services, "default/web");
  await take("iptables-restore");
  assert.equal(events.length, 1);
});

test("the ports of health and metrics are those of the flags, and tell how old the rules are", async (t) => {
  const [health, metrics] = await Promise.all([freePort(), freePort()]);
  const own = { "healthz-bind-address": `127.0.0.1:${health}`, "metrics-bind-address": `127.0.0.1:${metrics}` };
  const { take, clock } = await start(t, { own });
  const get = (port: number, path: string) => fetch(`http://127.0.0.1:${port}${path}`);
  await waitFor(() => get(health, "/healthz").catch(() => undefined), { what: "the port" });
  await take("iptables-restore");
  assert.equal((await get(health, "/healthz")).status, 200);
  const page = await (await waitFor(() => get(metrics, "/metrics").catch(() => undefined))).text();
  assert.match(page, /^kubeproxy_sync_proxy_rules_last_timestamp_seconds [1-9]/m);
  assert.equal(await (await get(metrics, "/proxyMode")).text(), "iptables");
  await clock.advance(120_000);
  assert.equal((await get(health, "/healthz")).status, 200, "nothing is waiting");
});

test("rules of one family that are out of date for two periods of checks fail the health of the node", async (t) => {
  const port = await freePort();
  const own = { "healthz-bind-address": `127.0.0.1:${port}` };
  const { clock, part } = await start(t, { own, fails: "ip6tables-restore", objects: [dual("web")] });
  const ask = async (): Promise<number> => (await fetch(`http://127.0.0.1:${port}/healthz`)).status;
  await waitFor(() => ask().catch(() => undefined), { what: "the port" });
  for (let second = 1; second < 60; second++) await clock.advance(1_000);
  await clock.advance(999);
  assert.equal(await ask(), 200);
  await clock.advance(1);
  assert.equal(await ask(), 503);
  assert.throws(() => part.check?.(), { message: "xtables lock" });
});

test("the health check port counts the ready endpoints of this node, until the Service is another proxy's or the part ends", async (t) => {
  const probe = createServer();
  const port = await listening(t, probe);
  await new Promise((resolve) => probe.close(resolve));
  const { client, clock, stop } = await start(t);
  const spec = { type: "LoadBalancer", externalTrafficPolicy: "Local", healthCheckNodePort: port } as const;
  const ask = async (): Promise<unknown> => {
    await clock.advance(1_000);
    const answer = await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined);
    return answer === undefined ? "closed" : ((await answer.json()) as { localEndpoints: number }).localEndpoints;
  };
  const endpoints = [
    anEndpoint("10.77.1.1", "n1"),
    anEndpoint("10.77.1.2", "n1", { conditions: { ready: false } }),
    anEndpoint("10.77.1.3", "n1", { conditions: {} }),
    anEndpoint("10.77.2.1", "n2"),
  ];
  // The same endpoint at two ports.
  const second = { ...aSlice("lb", [anEndpoint("10.77.1.1", "n1")], 9090) };
  client.put(services, aService("lb", spec));
  client.put(endpointSlices, aSlice("lb", endpoints), { ...second, metadata: { ...second.metadata, name: "lb-2" } });
  await waitFor(async () => (await ask()) === 2);
  const foreign = aService("lb", spec);
  foreign.metadata.labels = { "service.kubernetes.io/service-proxy-name": "mesh" };
  client.put(services, foreign);
  await waitFor(async () => (await ask()) === "closed");
  client.put(services, aService("lb", spec));
  await waitFor(async () => (await ask()) === 2);
  await stop();
  assert.equal(await ask(), "closed");
});

const settings = (change: Record<string, unknown>) => settingsOf({ ...flags, ...change } as ServicesFlags);

test("flags at their limits are taken", () => {
  assert.equal(settings({ "iptables-chain-prefix": "ABCDEFGHIJKLM-" }).prefix, "ABCDEFGHIJKLM-");
  for (const bit of [0, 31]) assert.equal(settings({ "iptables-masquerade-bit": bit }).masqueradeBit, bit);
  assert.deepEqual(settings({ "nodeport-addresses": ["10.0.0.0/8", "fd00::/8"] }).nodePortNetworks, ["10.0.0.0/8", "fd00::/8"]);
});

for (const [flag, value] of [
  ["iptables-chain-prefix", "ABCDEFGHIJKLMN-"],
  ["iptables-chain-prefix", "-COX"],
  ["iptables-chain-prefix", ""],
  ["iptables-masquerade-bit", 32],
  ["iptables-masquerade-bit", -1],
  ["cluster-cidr", ["10.0.0.0/8", "10.0.0.1"]],
  ["nodeport-addresses", ["10.0.0.0/8", "node"]],
] as const)
  test(`--${flag}=${JSON.stringify(value)} is refused`, () => {
    assert.throws(
      () => settings({ [flag]: value }),
      (err) => err instanceof ConfigError && err.message.startsWith(`--${flag} must `),
    );
  });
