import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { Reconnection } from "@coxswain/apimachinery/informers/reconnection";
import { leases } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { type FakeClient, newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type Machine, newSite } from "../testing/machines.ts";
import { silenceMs } from "../testing/namespace-agent.ts";
import { needsRoot } from "../testing/namespaces.ts";
import { Announcer } from "./announcer.ts";
import { removeLeftAddresses } from "./left-addresses.ts";
import { linkFor, neighbourOn, releaseAddresses } from "./local-addresses.ts";
import { newAnnouncerMetrics } from "./metrics.ts";
import { Pool } from "./pool.ts";

const long = process.env["COX_TEST_LONG"] === undefined ? "long: only with ./cox test --long" : false;
const [vip, vip6] = ["192.168.77.50", "fd77::50"];

/** An announcer of a machine, which can be killed: from then on it reaches neither the API server nor the kernel. */
function start(t: TestContext, machine: Machine, client: Client, wanted: readonly string[]) {
  const state = { isKilled: false };
  const dead = new Error("killed");
  const guarded = new Proxy(client, {
    get(target, key) {
      const value = Reflect.get(target, key) as unknown;
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => (state.isKilled ? Promise.reject(dead) : value.apply(target, args));
    },
  });
  const announcer = new Announcer({
    reconnection: new Reconnection({ periodMs: () => 500, clock: realClock }),
    ...{ client: guarded, identity: machine.name, log: discardLogger, clock: realClock, chainPrefix: "COX-" },
    host: {
      run: (...args) => (state.isKilled ? Promise.reject(dead) : machine.run(...args)),
      async send(from, to) {
        if (!state.isKilled) await machine.namespace.request({ op: "send", from, to });
      },
      async set(file, value) {
        if (!state.isKilled) await machine.namespace.request({ op: "set", file, value });
      },
    },
    nodeAddresses: () => [],
    metrics: newAnnouncerMetrics(newMetricsRegistry()),
  });
  const ending = new AbortController();
  announcer.set(new Set(wanted), ending.signal);
  const running = announcer.run(ending.signal);
  const stop = async (): Promise<void> => {
    ending.abort();
    await running;
  };
  t.after(stop);
  return {
    announcer,
    stop,
    set: (...addresses: string[]) => announcer.set(new Set(addresses), ending.signal),
    kill() {
      state.isKilled = true;
    },
  };
}

const holderOf = (client: FakeClient, ip: string): string | undefined =>
  client.object<{ metadata: object; spec: { holderIdentity: string } }>(
    leases,
    `coxswain-load-balancers/address-${ip.replaceAll(".", "-")}`,
  )?.spec.holderIdentity;
const has = async ({ namespace }: Machine, ip: string): Promise<boolean> =>
  (await namespace.ip("address show dev eth0")).includes(` ${ip}/`);

async function setUp(t: TestContext) {
  const site = await newSite(t);
  const [m1, m2] = await Promise.all([site.addMachine("m1", "a", 1), site.addMachine("m2", "a", 2)]);
  for (const machine of [m1, m2]) await machine.namespace.request({ op: "listen", name: machine.name, port: 8080 });
  // What the rules of Services do with a connection to the address: it gets another destination.
  for (const machine of [m1, m2])
    await machine.run("iptables", `-t nat -A PREROUTING -d ${vip} -p tcp --dport 80 -j REDIRECT --to-ports 8080`.split(" "));
  for (const [i, machine] of [m1, m2].entries())
    await machine.run(
      "iptables",
      `-t nat -A PREROUTING -d ${vip} -p tcp --dport 81 -j DNAT --to-destination 192.168.77.${i + 1}:8080`.split(" "),
    );
  const fetchFrom = async (port: number, more: { readonly timeoutMs?: number } = {}): Promise<string> => {
    const [answer] = await site.router.ask({ protocol: "tcp", host: vip, port, ...more });
    return (answer as string).split(" ")[0] as string;
  };
  return { site, m1, m2, fetchFrom, client: newFakeClient() };
}

test("an address moves to another machine with its lease, and clients follow at once", { skip: needsRoot }, async (t) => {
  const { m1, m2, fetchFrom, client, site } = await setUp(t);
  const one = start(t, m1, client, [vip, vip6]);
  await waitFor(async () => (await has(m1, vip)) && (await has(m1, vip6)));
  await waitFor(async () => (await fetchFrom(81, { timeoutMs: silenceMs })) === "m1");
  one.announcer.check();

  await t.test("programs that listen on all addresses do not answer on it", async () => {
    assert.equal(await fetchFrom(8080), "refused");
    assert.equal((await site.router.ask({ protocol: "tcp", host: "192.168.77.1", port: 8080 }))[0], "m1 192.168.77.254");
  });

  await t.test("programs of the machine itself reach a Service by it, on whichever machine its endpoint is", async () => {
    for (const i of [0, 1])
      await m1.run(
        "iptables",
        `-t nat -A OUTPUT -d ${vip} -p tcp --dport ${82 + i} -j DNAT --to-destination 192.168.77.${i + 1}:8080`.split(" "),
      );
    await m1.run("iptables", "-t nat -A POSTROUTING -m conntrack --ctstate DNAT -j MASQUERADE".split(" "));
    for (const [i, { name }] of [m1, m2].entries())
      assert.match((await m1.namespace.ask({ protocol: "tcp", host: vip, port: 82 + i }))[0] as string, new RegExp(`^${name} `));
    assert.equal((await m1.namespace.ask({ protocol: "tcp", host: vip, port: 8080 }))[0], "refused");
  });

  const two = start(t, m2, client, [vip]);
  await t.test("a machine without the lease does not have the address", async () => {
    await waitFor(() => client.actions.filter(({ verb }) => verb === "get").length > 4);
    assert.equal(await has(m2, vip), false);
  });

  await t.test("it moves when the first one ends", async () => {
    await one.stop();
    assert.equal(await has(m1, vip), false);
    assert.doesNotMatch(await m1.run("iptables", ["-S", "COX-LB-INPUT"]), /REJECT/);
    await waitFor(() => holderOf(client, vip) === "m2");
    await waitFor(async () => (await fetchFrom(81, { timeoutMs: silenceMs })) === "m2");
  });

  await t.test("it is given up when no Service has it, and taken again", async () => {
    two.set();
    await waitFor(async () => !(await has(m2, vip)));
    two.set(vip);
    await waitFor(async () => has(m2, vip));
    assert.equal(holderOf(client, vip), "m2");
  });

  await t.test("an address that was removed from the kernel is added again", async () => {
    await m2.namespace.ip(`address delete ${vip}/32 dev eth0`);
    await waitFor(async () => has(m2, vip));
    two.announcer.check();
  });

  await t.test("it can be removed without the process", async () => {
    two.kill();
    await releaseAddresses(new Pool([`${vip}-${vip}`]), m2.run);
    assert.equal(await has(m2, vip), false);
  });

  await t.test("a successor that has no address removes the rules of the one that was killed", async () => {
    assert.match(await m2.run("iptables", ["-S", "COX-LB-INPUT"]), /REJECT/);
    start(t, m2, client, []);
    await waitFor(async () => !/REJECT/.test(await m2.run("iptables", ["-S", "COX-LB-INPUT"])));
  });

  await t.test("a process without the part removes the chain", async () => {
    await m2.namespace.ip(`address add ${vip}/32 dev eth0`);
    const pool = new Pool([`${vip}-${vip}`]);
    assert.equal(await removeLeftAddresses(pool, "COX-", m2.run), true);
    assert.doesNotMatch(await m2.run("iptables-save", []), /COX-LB/);
    assert.equal(await has(m2, vip), false);
    assert.equal(await removeLeftAddresses(pool, "COX-", m2.run), false);
  });
});

test("the address of a machine whose process was killed moves within seconds", { skip: needsRoot || long }, async (t) => {
  const { m1, m2, fetchFrom, client } = await setUp(t);
  const one = start(t, m1, client, [vip]);
  await waitFor(() => holderOf(client, vip) === "m1");
  start(t, m2, client, [vip]);
  await waitFor(async () => (await fetchFrom(81, { timeoutMs: silenceMs })) === "m1");
  const before = performance.now();
  one.kill();
  await waitFor(async () => (await fetchFrom(81, { timeoutMs: silenceMs })) === "m2", { timeoutMs: 20_000 });
  assert.equal(await has(m1, vip), false, "the kernel has taken it away from the first");
  t.diagnostic(`after ${Math.round(performance.now() - before)} ms`);
});

test("a machine that cannot reach the API server gives its addresses up", { skip: needsRoot || long }, async (t) => {
  const { m1, client } = await setUp(t);
  start(t, m1, client, [vip]);
  await waitFor(async () => has(m1, vip));
  client.react("*", "leases", () => {
    throw new Error("ECONNREFUSED");
  });
  await waitFor(async () => !(await has(m1, vip)), { timeoutMs: 20_000 });
});

/** An announcer on a host that records what it binds and unbinds, with a fake clock; it has the leases at once. */
function startOnFakeHost(t: TestContext) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const host = {
    ...{ refuses: false, refusesRules: false, refusesLists: false, unbinds: true, sends: true, network: "192.168.77.1", sent: 0 },
    ...{ lines: [] as string[], steps: [] as string[] },
  };
  const errors: unknown[] = [];
  const registry = newMetricsRegistry();
  const announcer = new Announcer({
    reconnection: new Reconnection({ periodMs: () => 500, clock }),
    ...{ client, identity: "m1", clock, chainPrefix: "COX-" },
    log: { ...discardLogger, error: (_: string, err: unknown) => void errors.push(err) },
    host: {
      async run(program, args, input = "") {
        const text = [program, ...args].join(" ");
        host.steps.push(`${program} ${input.split("\n", 1)[0]}`);
        if (program.endsWith("-save") && host.refusesLists) throw new Error("xtables lock");
        if (program === "iptables-restore" && host.refusesRules) throw new Error("xtables lock");
        if (text === "ip -j -d address show")
          return JSON.stringify([
            {
              ifname: "eth0",
              addr_info: [{ local: host.network, prefixlen: 24 }, ...(host.unbinds ? [] : [{ local: vip, prefixlen: 32 }])],
            },
          ]);
        if (/^address /.test(input)) {
          if (host.refuses) throw new Error("RTNETLINK answers: Operation not permitted");
          host.lines.push(...input.trim().split("\n"));
        } else if (/^ip address del/.test(text)) {
          if (!host.unbinds) throw new Error("ip: killed by SIGKILL");
          host.lines.push(text);
        }
        return "";
      },
      async send() {
        if (!host.sends) throw new Error("send EPERM");
        host.sent++;
      },
      set: async () => {},
    },
    nodeAddresses: () => [],
    metrics: newAnnouncerMetrics(registry),
  });
  const ending = new AbortController();
  const running = announcer.run(ending.signal);
  t.after(async () => {
    ending.abort();
    await running;
  });
  return {
    announcer,
    client,
    host,
    errors,
    metrics: () => registry.render(),
    set: (...addresses: string[]) => announcer.set(new Set(addresses), ending.signal),
    /** Lets the time between two refreshes pass. @returns what was bound and unbound */
    async passed(): Promise<string[]> {
      await settle(30);
      await clock.advance(1_500);
      await settle(30);
      return host.lines.splice(0);
    },
  };
}

test("an address that the kernel refuses is reported, and retried", async (t) => {
  const { announcer, host, set, passed } = startOnFakeHost(t);
  host.refuses = true;
  set(vip);
  assert.deepEqual(await passed(), []);
  assert.throws(() => announcer.check(), /192\.168\.77\.50: RTNETLINK answers: Operation not permitted/);
  assert.equal(host.sent, 0, "it is not announced before it is bound");
  host.refuses = false;
  assert.ok((await passed()).includes(`address replace ${vip}/32 dev eth0 valid_lft 5 preferred_lft 0`));
  announcer.check();
  host.refuses = true;
  await passed();
  assert.throws(() => announcer.check(), /192\.168\.77\.50/, "refused when it is refreshed");
  host.refuses = false;
  await passed();
  announcer.check();
});

test("a machine without an interface for the address says so, and takes the address when it has one", async (t) => {
  const { announcer, host, set, passed } = startOnFakeHost(t);
  host.network = "10.0.0.1";
  set(vip);
  assert.deepEqual(await passed(), []);
  assert.throws(() => announcer.check(), { message: `${vip}: no interface has the Node's address` });
  host.network = "192.168.77.1";
  await passed();
  assert.ok((await passed()).some((line) => line.startsWith(`address replace ${vip}/32`)));
  announcer.check();
});

test("announcements that cannot be sent are logged and counted, and the address is held all the same", async (t) => {
  const { host, errors, set, passed, metrics } = startOnFakeHost(t);
  host.sends = false;
  set(vip);
  assert.ok((await passed()).some((line) => line.startsWith(`address replace ${vip}/32`)));
  for (let i = 0; i < 3; i++) await passed();
  assert.deepEqual(
    errors.map(String),
    Array.from({ length: 3 }, () => "Error: send EPERM"),
  );
  assert.match(await metrics(), /^coxswain_load_balancer_announce_failures_total 3$/m);
});

test("rules of an earlier process that cannot be looked for are an error in the log, at each look", async (t) => {
  const { announcer, host, errors, passed } = startOnFakeHost(t);
  host.refusesLists = true;
  await passed();
  await passed();
  assert.match(String(errors[0]), /xtables lock/);
  assert.equal(errors.length, 2);
  announcer.check();
  host.refusesLists = false;
  await passed();
  await passed();
  assert.equal(errors.length, 2);
});

test("an address that is not wanted any more is no failure any more", async (t) => {
  const { announcer, host, set, passed } = startOnFakeHost(t);
  host.refuses = true;
  set(vip);
  await passed();
  assert.throws(() => announcer.check());
  set();
  await passed();
  announcer.check();
});

test("an address that is wanted again while its candidacy ends is announced again", async (t) => {
  const { host, set, passed } = startOnFakeHost(t);
  const bound = (lines: readonly string[]): boolean => lines.some((line) => line.startsWith(`address replace ${vip}/32`));
  set(vip);
  assert.ok(bound(await passed()));
  set();
  set(vip);
  await passed();
  assert.ok(bound(await passed()), "after the first candidacy has ended");
  set();
  await passed();
  host.lines.splice(0);
  assert.deepEqual(await passed(), [], "not wanted any more");
});

test("rules are there before the address is bound; it is announced three times, and counted while it is held", async (t) => {
  const { host, set, passed, metrics } = startOnFakeHost(t);
  set(vip);
  await passed();
  const of = (begin: string): number => host.steps.findIndex((step) => step.startsWith(begin));
  assert.ok(
    of("iptables-restore *filter") >= 0 && of("iptables-restore *filter") < of("ip address replace"),
    host.steps.join("\n"),
  );
  assert.ok(!host.steps.some((step) => step.startsWith("ip6tables-restore")), "no rules of IPv6 without such an address");
  for (let i = 0; i < 4; i++) await passed();
  assert.equal(host.sent, 3);
  assert.match(await metrics(), /^coxswain_load_balancer_addresses_announced 1$/m);
  assert.match(await metrics(), /^coxswain_load_balancer_takeovers_total 1$/m);
  set();
  await passed();
  assert.match(await metrics(), /^coxswain_load_balancer_addresses_announced 0$/m);
});

test("a write of the rules that failed is made again, and an address that cannot be unbound leaves the others alone", async (t) => {
  const { announcer, host, errors, set, passed } = startOnFakeHost(t);
  host.refusesRules = true;
  set(vip);
  assert.deepEqual(await passed(), [], "not bound without its rules");
  assert.throws(() => announcer.check(), /192\.168\.77\.50: xtables lock/);
  host.refusesRules = false;
  await passed();
  assert.ok((await passed()).some((line) => line.startsWith(`address replace ${vip}/32`)));
  announcer.check();
  host.unbinds = false;
  errors.length = 0;
  set("192.168.77.51");
  await passed();
  assert.match(String(errors[0]), /SIGKILL/);
  await passed();
  assert.ok((await passed()).some((line) => line.startsWith("address replace 192.168.77.51/32")));
  host.unbinds = true;
});

test("an address is on the interface of its network, else on that of the node's address", () => {
  const link = (name: string, ip: string, bits = 24) => ({ name, mtu: 1500, address: "", isUp: true, addresses: [{ ip, bits }] });
  const links = [
    link("lo", "127.0.0.1", 8),
    link("eth0", "10.0.0.1"),
    link("eth1", "192.168.77.1"),
    link("wan", "203.0.113.9", 32),
  ];
  assert.equal(linkFor(vip, links, ["10.0.0.1"])?.name, "eth1");
  assert.equal(linkFor("198.51.100.1", links, ["10.0.0.1"])?.name, "eth0");
  assert.equal(linkFor("203.0.113.9", links, []), undefined);
  assert.equal(neighbourOn(link("eth1", "192.168.77.1")), "192.168.77.254");
  assert.equal(neighbourOn(link("eth1", "192.168.77.254")), "192.168.77.253");
  assert.equal(neighbourOn(link("wan", "203.0.113.9", 32)), undefined);
});
