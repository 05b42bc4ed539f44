/** What is written when, what of a failed write is left, and what the kernel lost: with a machine that only records. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { ProgramError } from "../host/run-program.ts";
import { testSettings } from "../testing/node-network.ts";
import { anEndpoint, aService, aSlice } from "../testing/objects.ts";
import type { Family } from "./addresses.ts";
import { newProxyMetrics } from "./metrics.ts";
import { type ServicePort, servicePorts } from "./service-port.ts";
import { ServiceRules } from "./service-rules.ts";

/** A port of a Service with endpoints on this node (`n1`). */
function aPort(name: string, clusterIP: string, ips: readonly string[], protocol: "TCP" | "UDP" = "TCP"): ServicePort[] {
  const endpoints = ips.map((ip) => anEndpoint(ip, "n1"));
  const service = aService(name, { clusterIP, ports: [{ port: 80, protocol }] });
  const slice = aSlice(name, endpoints, 8080, { addressType: clusterIP.includes(":") ? "IPv6" : "IPv4" });
  const family = clusterIP.includes(":") ? "IPv6" : "IPv4";
  return servicePorts(service, [slice], { name: "n1", zone: undefined }, family);
}

function start(
  t: TestContext,
  {
    family = "IPv4" as Family,
    masqueradedNetworks = [] as string[],
    onRefused = undefined as ((text: string) => void) | undefined,
    /** Whether iptables refuses an input. */
    refuses = (_: string): boolean => false,
  } = {},
) {
  const clock = newFakeClock();
  const registry = newMetricsRegistry();
  const services = new Map<string, ServicePort[]>();
  const chains = new Set<string>();
  const jumps = new Set<string>();
  const written: string[] = [];
  /** What was given to iptables-restore, whether or not it was refused. */
  const attempts: string[] = [];
  const deleted: string[] = [];
  const failures: Error[] = [];
  /** What else a program does before it answers. */
  const before = { restore: async () => {}, list: async () => {} };
  const errors: unknown[] = [];
  const warnings: string[] = [];
  const conntrack = { failure: undefined as Error | undefined };
  const run = async (command: string, args: readonly string[], input = ""): Promise<string> => {
    if (command === "conntrack") {
      deleted.push(args.join(" "));
      if (conntrack.failure !== undefined) throw conntrack.failure;
      throw new ProgramError("conntrack: 0 flow entries have been deleted.", 1);
    }
    if (command.endsWith("-save")) return args.includes("nat") ? [...chains].map((chain) => `:${chain} - [0:0]`).join("\n") : "";
    if (!command.endsWith("-restore")) {
      await before.list();
      return [...jumps].filter((jump) => jump.startsWith(`-A ${args.at(-1)} `)).join("\n");
    }
    await before.restore();
    const failed = failures.shift();
    if (failed !== undefined) throw failed;
    attempts.push(input);
    if (refuses(input)) throw new ProgramError("iptables-restore: unknown option", 2);
    written.push(input);
    for (const [, chain = ""] of input.matchAll(/^:(\S+)/gm)) chains.add(chain);
    for (const [, chain = ""] of input.matchAll(/^-X (\S+)/gm)) chains.delete(chain);
    for (const [, rule = ""] of input.matchAll(/^-I (.+)$/gm)) jumps.add(`-A ${rule}`);
    return "";
  };
  const rules = new ServiceRules({
    settings: { ...testSettings, family },
    keys: () => services.keys(),
    portsOf: (key) => services.get(key) ?? [],
    checkPeriodMs: 30_000,
    onRefused: (key, reason) => (onRefused ?? assert.fail)(`${key} is refused: ${reason}`),
    log: {
      ...discardLogger,
      error: (_: string, err: unknown) => void errors.push(err),
      warn: (text: string) => void warnings.push(text),
    },
    metrics: newProxyMetrics(registry),
    turns: new Turns(() => 0), // never yields: the test moves the clock
    ...{ masqueradedNetworks, run, clock },
  });
  const ending = new AbortController();
  const running = { ended: Promise.resolve() };
  const end = async (): Promise<void> => {
    ending.abort();
    await running.ended;
  };
  t.after(end);
  const begin = async (): Promise<void> => {
    running.ended = rules.run(ending.signal);
    await clock.advance(0);
  };
  const set = async (key: string, ports: ServicePort[]): Promise<void> => {
    if (ports.length === 0) services.delete(key);
    else services.set(key, ports);
    rules.changed(key);
    await clock.advance(600);
  };
  const take = (): string => written.splice(0).join("");
  return {
    clock,
    rules,
    services,
    chains,
    jumps,
    take,
    deleted,
    failures,
    before,
    errors,
    warnings,
    attempts,
    conntrack,
    begin,
    set,
    end,
    metrics: () => registry.render(),
  };
}

test("is not healthy before the first rules are written, then writes what has changed and what has gone", async (t) => {
  const { rules, services, chains, jumps, take, begin, set } = start(t, {
    masqueradedNetworks: ["10.244.0.0/24", "10.244.1.0/24"],
  });
  services.set("default/a", aPort("a", "10.96.0.1", ["10.0.0.1"]));
  assert.throws(() => rules.check(), /no rules have been written yet/);
  await begin();
  rules.check();
  assert.match(take(), /-A COX-HAIRPIN -s 10.244.0.0\/24 .*\n-A COX-HAIRPIN -s 10.244.1.0\/24 .*\n-A COX-HAIRPIN -s 10.0.0.1 /);
  assert.equal(jumps.size, 8);
  await set("default/b", aPort("b", "10.96.0.2", ["10.0.0.1", "10.0.0.2"]));
  const both = take();
  assert.match(both, /10\.0\.0\.2:8080/);
  assert.doesNotMatch(both, /:COX-I-1 |:COX-POSTROUTING /, "nothing else");
  await set("default/b", aPort("b", "10.96.0.2", ["10.0.0.1"]));
  assert.match(take(), /-A COX-HAIRPIN .*10.244.1.0\/24(?![\s\S]*10\.0\.0\.2)/);
  await set("default/a", []);
  assert.doesNotMatch(take(), /HAIRPIN/, "the other Service has the endpoint still");
  const left = chains.size;
  await set("default/b", []);
  assert.match(take(), /:COX-HAIRPIN[\s\S]*-X COX-I-2\n/);
  assert.ok(chains.size < left);
});

test("after a failure everything is written again, Services included that are gone, and the delay counts from the first trigger", async (t) => {
  const { clock, rules, chains, take, failures, errors, begin, set, services, metrics } = start(t);
  services.set("default/a", aPort("a", "10.96.0.1", ["10.0.0.1"]));
  await begin();
  take();
  const failure = new ProgramError("iptables-restore: line 3 failed", 1);
  failures.push(failure, failure);
  services.set("default/b", aPort("b", "10.96.0.2", ["10.0.0.2"]));
  services.delete("default/a");
  rules.changed("default/b", [clock.now()]);
  await clock.advance(20);
  assert.deepEqual([errors, take()], [[failure], ""]);
  assert.throws(() => rules.check(), /line 3 failed/);
  await clock.advance(5_000);
  const text = take();
  assert.match(text, /:COX-POSTROUTING/, "all of it");
  assert.match(text, /10\.0\.0\.2:8080/);
  assert.doesNotMatch(text, /10\.0\.0\.1:8080/, "its event had not come yet");
  assert.ok(!chains.has("COX-I-1"));
  rules.check();
  const shown = await metrics();
  assert.match(shown, /^kubeproxy_sync_proxy_rules_iptables_restore_failures_total 2$/m);
  assert.match(shown, /^kubeproxy_network_programming_duration_seconds_count 1$/m);
  await set("default/b", aPort("b", "10.96.0.2", ["10.0.0.3"]));
  assert.doesNotMatch(take(), /:COX-POSTROUTING/, "changes only, again");
});

test("while rules cannot be written, not more than 10,000 times of changes are kept", async (t) => {
  const { clock, rules, failures, begin, services, metrics } = start(t);
  await begin();
  failures.push(...Array.from({ length: 2 }, () => new ProgramError("iptables-restore: line 3 failed", 1)));
  services.set("default/b", aPort("b", "10.96.0.2", ["10.0.0.2"]));
  for (let at = 0; at < 150_000; at++) rules.changed("default/b", [clock.now()]);
  await clock.advance(5_000);
  rules.check();
  assert.match(await metrics(), /^kubeproxy_network_programming_duration_seconds_count 10000$/m);
});

test("entries of UDP that lead to what is gone are deleted once, for all Services that changed together", async (t) => {
  const { clock, rules, deleted, services, errors, begin, set } = start(t);
  for (const name of ["a", "b"])
    services.set(`default/${name}`, aPort(name, `10.96.0.${name === "a" ? 1 : 2}`, ["10.0.0.1"], "UDP"));
  await begin();
  deleted.length = 0;
  for (const name of ["a", "b"]) {
    services.set(`default/${name}`, aPort(name, `10.96.0.${name === "a" ? 1 : 2}`, ["10.0.0.2"], "UDP"));
    rules.changed(`default/${name}`);
  }
  await clock.advance(600);
  const filter = (ip: string) => `-D -f ipv4 -p udp --orig-dst ${ip} --orig-port-dst 80 --dst-nat 10.0.0.1`;
  assert.deepEqual(deleted.splice(0), [filter("10.96.0.1"), filter("10.96.0.2")]);
  await set("default/c", aPort("c", "10.96.0.3", ["10.0.0.3"]));
  assert.deepEqual([deleted, errors], [[], []]);
});

test("rules that the kernel lost are written again at the next check; a change meanwhile is written, too", async (t) => {
  const { clock, services, jumps, chains, take, begin, end } = start(t);
  services.set("default/a", aPort("a", "10.96.0.1", ["10.0.0.1"]));
  await begin();
  take();
  await clock.advance(60_000);
  assert.equal(take(), "", "nothing is missing");
  jumps.clear();
  chains.clear();
  await clock.advance(31_000);
  assert.match(take(), /:COX-POSTROUTING[\s\S]*10\.0\.0\.1:8080/);
  assert.equal(jumps.size, 8);
  await end();
  assert.equal(clock.waiting, 0);
});

test("rules that the kernel lost while a change is written are written after it, not at the next check", async (t) => {
  const { clock, rules, services, chains, jumps, before, take, begin } = start(t);
  services.set("default/a", aPort("a", "10.96.0.1", ["10.0.0.1"]));
  await begin();
  await clock.advance(29_900);
  take();
  const held = Promise.withResolvers<void>();
  before.restore = () => held.promise;
  services.set("default/b", aPort("b", "10.96.0.2", ["10.0.0.2"]));
  rules.changed("default/b");
  await clock.advance(50);
  jumps.clear();
  chains.clear();
  await clock.advance(1_000); // the check comes, while the write of the change is held up
  before.restore = async () => {};
  held.resolve();
  await clock.advance(5_000);
  assert.match(take(), /10\.0\.0\.2:8080[\s\S]*:COX-POSTROUTING[\s\S]*10\.0\.0\.1:8080/);
  assert.equal(jumps.size, 8);
});

test("rules that the kernel cannot be asked about are written again", async (t) => {
  const { clock, services, before, take, begin } = start(t);
  services.set("default/a", aPort("a", "10.96.0.1", ["10.0.0.1"]));
  await begin();
  take();
  before.list = async () => {
    before.list = async () => {};
    throw new ProgramError("iptables: Resource temporarily unavailable", 4);
  };
  await clock.advance(31_000);
  assert.match(take(), /:COX-POSTROUTING[\s\S]*10\.0\.0\.1:8080/);
});

test("the end waits for a check of the kernel that is under way", async (t) => {
  const { clock, before, begin, end } = start(t);
  await begin();
  const held = Promise.withResolvers<void>();
  before.list = () => held.promise;
  await clock.advance(30_000);
  let isOver = false;
  const ended = end().then(() => {
    isOver = true;
  });
  await clock.advance(1_000);
  assert.equal(isOver, false);
  held.resolve();
  await ended;
});

test("a change of the node plans all Services anew: new ones, and those whose rules are in the kernel", async (t) => {
  const { clock, rules, services, take, begin } = start(t);
  services.set("default/a", aPort("a", "10.96.0.1", ["10.0.0.1"]));
  await begin();
  take();
  services.delete("default/a");
  services.set("default/b", aPort("b", "10.96.0.2", ["10.0.0.2"]));
  rules.allChanged();
  await clock.advance(600);
  const text = take();
  assert.match(text, /-X COX-I-1\n/);
  assert.match(text, /10\.0\.0\.2:8080/);
});

test("without Services of IPv6 there are no rules of it; the first one brings all, chains of an earlier process go", async (t) => {
  const { rules, take, begin, set } = start(t, { family: "IPv6" });
  await begin();
  rules.check();
  assert.equal(take(), "");
  await set("default/a", aPort("a", "fd00::1", ["fd00::a"]));
  assert.match(take(), /:COX-POSTROUTING[\s\S]*\[fd00::a\]:8080/);
  const later = start(t, { family: "IPv6" });
  later.chains.add("COX-S-of-before");
  await later.begin();
  assert.match(later.take(), /-X COX-S-of-before\n/);
});

test("a change that comes while rules are written is written after them", async (t) => {
  const { clock, rules, services, take, begin } = start(t);
  await begin();
  take();
  services.set("default/a", aPort("a", "10.96.0.1", ["10.0.0.1"]));
  rules.changed("default/a");
  const advanced = clock.advance(20); // the write begins
  await Promise.resolve();
  services.set("default/b", aPort("b", "10.96.0.2", ["10.0.0.2"]));
  rules.changed("default/b");
  await advanced;
  await clock.advance(600);
  assert.match(take(), /10\.0\.0\.1:8080[\s\S]*10\.0\.0\.2:8080/);
});

test("a Service of 100 million destinations is refused in less than 100 ms, with threefold slack, and others keep their rules", async (t) => {
  const reasons: string[] = [];
  const { begin, set, take } = start(t, { onRefused: (text) => reasons.push(text) });
  await begin();
  const externalIPs = Array.from({ length: 10_000 }, (_, at) => `192.0.${at >> 8}.${at & 255}`);
  const service = aService("large", {
    ...{ clusterIP: "10.96.0.9", externalIPs },
    ports: Array.from({ length: 10_000 }, (_, at) => ({ name: `p${at}`, port: at + 1, protocol: "TCP" as const })),
  });
  const before = process.threadCpuUsage();
  await set("default/large", servicePorts(service, [], { name: "n1", zone: undefined }, "IPv4"));
  const { user } = process.threadCpuUsage(before);
  assert.ok(user < 300_000, `${user / 1000} ms`);
  assert.deepEqual(reasons, ["default/large is refused: its ports on its addresses are 100010000 destinations, more than 10000"]);
  await set("default/a", aPort("a", "10.96.0.1", ["10.0.0.1"]));
  assert.match(take(), /10\.0\.0\.1:8080/);
  assert.equal(reasons.length, 1);
});

test("a Service is reported as too large again when it has been smaller, and counted while it is", async (t) => {
  const reasons: string[] = [];
  const { begin, set, metrics } = start(t, { onRefused: (text) => reasons.push(text) });
  await begin();
  const sized = (count: number): ServicePort[] => {
    const externalIPs = Array.from({ length: count }, (_, at) => `192.0.${at >> 8}.${at & 255}`);
    return servicePorts(aService("a", { clusterIP: "10.96.0.1", externalIPs }), [], { name: "n1", zone: undefined }, "IPv4");
  };
  const refused = async (): Promise<string | undefined> => /refused_services\{family="IPv4"\} (\d)/.exec(await metrics())?.[1];
  await set("default/a", sized(10_000));
  assert.deepEqual([reasons.length, await refused()], [1, "1"]);
  await set("default/a", sized(9_999));
  assert.deepEqual([reasons.length, await refused()], [1, "0"]);
  await set("default/a", sized(10_001));
  assert.deepEqual([reasons.length, await refused()], [2, "1"]);
});

/** A rule set of which iptables refuses the rules of port 99. */
function startRefusing(t: TestContext) {
  const state = { isRefusing: true };
  const reasons: string[] = [];
  const started = start(t, {
    onRefused: (text) => reasons.push(text),
    refuses: (text) => state.isRefusing && text.includes("--dport 99 "),
  });
  const bad = servicePorts(
    aService("bad", { clusterIP: "10.96.0.9", ports: [{ port: 99, protocol: "TCP" }] }),
    [],
    { name: "n1", zone: undefined },
    "IPv4",
  );
  return { ...started, state, reasons, bad };
}
const isOfBad = (text: string): boolean => text.includes("--dport 99 ");

test("a write that fails while the refused changes are looked for is no refusal: all are written again", async (t) => {
  const { clock, rules, services, attempts, begin, before, failures, errors, reasons, bad, take } = startRefusing(t);
  services.set("default/bad", bad);
  services.set("default/a", aPort("a", "10.96.0.1", ["10.0.0.1"]));
  let restores = 0;
  before.restore = async () => {
    if (++restores === 2) failures.push(new Error("xtables lock"));
  };
  await begin();
  assert.deepEqual([errors.map(String), attempts.length, reasons], [["Error: xtables lock"], 1, []]);
  assert.throws(() => rules.check(), { message: "xtables lock" });
  take();
  await clock.advance(1_000);
  assert.deepEqual(reasons, ["default/bad is refused: iptables-restore: unknown option"]);
  rules.check();
  const written = take();
  assert.ok(written.includes("-d 10.96.0.1/32 ") && !isOfBad(written), written);
});

test("refused rules are tried again at every tenth check, and at no change of another Service; they are reported once", async (t) => {
  const { clock, rules, services, attempts, begin, set, state, reasons, bad, take } = startRefusing(t);
  services.set("default/bad", bad);
  await begin();
  assert.equal(reasons.length, 1);
  attempts.length = 0;
  await clock.advance(9 * 30_000 + 1_000);
  assert.equal(attempts.filter(isOfBad).length, 0, "nine checks");
  await clock.advance(30_000);
  assert.equal(attempts.filter(isOfBad).length, 1, "the tenth");
  await set("default/a", aPort("a", "10.96.0.1", ["10.0.0.1"]));
  await set("default/a", []);
  rules.changed("default/bad");
  await clock.advance(600);
  assert.equal(attempts.filter(isOfBad).length, 1, "changes of another one, and one that leaves its ports as they are");
  await clock.advance(10 * 30_000);
  assert.deepEqual([attempts.filter(isOfBad).length, reasons.length], [2, 1]);
  state.isRefusing = false;
  take();
  await clock.advance(10 * 30_000);
  assert.ok(isOfBad(take()));
});

test("a refused Service that is deleted while the kernel's rules cannot be written is forgotten with the next write", async (t) => {
  const { clock, rules, services, failures, begin, metrics, bad, reasons } = startRefusing(t);
  services.set("default/bad", bad);
  await begin();
  assert.equal(reasons.length, 1);
  failures.push(new ProgramError("Another app is currently holding the xtables lock", 4));
  services.delete("default/bad");
  services.set("default/a", aPort("a", "10.96.0.1", ["10.0.0.1"]));
  for (const key of ["default/bad", "default/a"]) rules.changed(key);
  await clock.advance(5_000);
  assert.match(await metrics(), /^coxswain_services_refused_services\{family="IPv4"\} 0$/m);
});

test("entries of the connection table that cannot be deleted do not fail the write", async (t) => {
  const { rules, services, conntrack, errors, begin, set, deleted } = start(t);
  services.set("default/a", aPort("a", "10.96.0.1", ["10.0.0.1"], "UDP"));
  await begin();
  conntrack.failure = new ProgramError("cannot run conntrack: ENOENT", undefined);
  deleted.length = 0;
  await set("default/a", aPort("a", "10.96.0.1", ["10.0.0.2"], "UDP"));
  assert.deepEqual([deleted.length, errors], [1, [conntrack.failure]]);
  rules.check();
});

test("a family without Services is not looked for in the kernel", async (t) => {
  const { clock, warnings, take, begin } = start(t, { family: "IPv6" });
  await begin();
  await clock.advance(100_000);
  assert.deepEqual([warnings, take()], [[], ""]);
});

test("a change that comes while rules are written counts as late from the begin of that write", async (t) => {
  const { clock, rules, services, before, begin } = start(t);
  await begin();
  const held = Promise.withResolvers<void>();
  before.restore = () => held.promise;
  services.set("default/a", aPort("a", "10.96.0.1", ["10.0.0.1"]));
  rules.changed("default/a");
  await clock.advance(1_000);
  services.set("default/b", aPort("b", "10.96.0.2", ["10.0.0.2"]));
  rules.changed("default/b");
  const again = Promise.withResolvers<void>();
  before.restore = () => again.promise;
  held.resolve();
  await clock.advance(10);
  assert.equal(rules.lateMs(), 990);
  again.resolve();
  before.restore = async () => {};
  await clock.advance(2_000);
  assert.equal(rules.lateMs(), 0);
});

test("after a slow write the next one begins within half a second", async (t) => {
  const { clock, rules, services, before, take, begin } = start(t);
  await begin();
  const held = Promise.withResolvers<void>();
  before.restore = () => held.promise;
  services.set("default/a", aPort("a", "10.96.0.1", ["10.0.0.1"]));
  rules.changed("default/a");
  await clock.advance(10_000);
  before.restore = async () => {};
  held.resolve();
  await clock.advance(0);
  take();
  services.set("default/b", aPort("b", "10.96.0.2", ["10.0.0.2"]));
  rules.changed("default/b");
  await clock.advance(499);
  assert.equal(take(), "");
  await clock.advance(1);
  assert.match(take(), /10\.0\.0\.2:8080/);
});

test("a run that ends during a write does not wait for another change", async (t) => {
  const { services, before, rules, end, clock } = start(t);
  services.set("default/a", aPort("a", "10.96.0.1", ["10.0.0.1"]));
  const held = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  before.restore = () => {
    asked.resolve();
    return held.promise;
  };
  const ending = new AbortController();
  let hasEnded = false;
  void rules.run(ending.signal).then(() => (hasEnded = true));
  await asked.promise;
  ending.abort(new Error("the part ends"));
  held.resolve();
  await waitFor(() => hasEnded, { timeoutMs: 5_000, what: "the end" });
  assert.equal(clock.waiting, 0);
  await end();
});
