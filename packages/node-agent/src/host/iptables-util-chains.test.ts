import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { keepUtilChains, type RunCommand, utilRules } from "./iptables-util-chains.ts";

const execute = promisify(execFile);

test("the marks are the bits that were requested, and IPv6 has no rule for localnet", () => {
  const marks = (ipv6: boolean): string => JSON.stringify(utilRules({ masqueradeBit: 3, dropBit: 31, ipv6 }));
  assert.match(marks(false), /--or-mark","0x00000008"/);
  assert.match(marks(false), /"--mark","0x80000000\/0x80000000"/);
  assert.match(marks(false), /127\.0\.0\.0\/8/);
  assert.doesNotMatch(marks(true), /127\.0\.0\.0\/8/);
});

/** In-memory rules per program; operations fail where iptables would fail. */
function tables(missing: readonly string[] = []) {
  const chains = new Map<string, string[]>();
  const calls: string[] = [];
  const waits = new Set<string>();
  const builtIn = ["filter INPUT", "filter OUTPUT", "nat POSTROUTING"];
  const run: RunCommand = async (program, args) => {
    const [, , , table, option, chain, ...rule] = args;
    waits.add(args.slice(0, 2).join(" "));
    calls.push(`${program} ${option} ${table} ${chain}`);
    await new Promise((resolve) => setImmediate(resolve));
    if (missing.includes(program)) throw new Error(`spawn ${program} ENOENT`);
    const key = `${program} ${table} ${chain}`;
    if (builtIn.some((name) => key.endsWith(` ${name}`)) && !chains.has(key)) chains.set(key, ["other"]);
    const rules = chains.get(key);
    const text = rule.join(" ");
    if (option === "-N") {
      if (rules !== undefined) throw new Error("Chain already exists.");
      chains.set(key, []);
      return;
    }
    if (rules === undefined || (option === "-C" && !rules.includes(text))) throw new Error("No chain/target/match by that name.");
    if (option === "-A") rules.push(text);
    if (option === "-I") rules.unshift(text);
  };
  return { chains, calls, waits, run };
}

const options = { masqueradeBit: 14, dropBit: 15, log: discardLogger };

test("jumps precede rules of other programs, and our rules have a fixed order, for each IP family", async () => {
  const { chains, waits, run } = tables();
  const stop = new AbortController();
  const clock = newFakeClock();
  const running = keepUtilChains({ ...options, clock, run }, stop.signal);
  await waitFor(() => clock.waiting > 0, { what: "the chains" });
  assert.deepEqual([...waits], ["-w 5"], "each call waits for the lock of the tables");
  for (const program of ["iptables", "ip6tables"]) {
    assert.deepEqual(chains.get(`${program} filter INPUT`), ["-j KUBE-FIREWALL", "other"]);
    assert.deepEqual(chains.get(`${program} filter OUTPUT`), ["-j KUBE-FIREWALL", "other"]);
    assert.match(chains.get(`${program} nat POSTROUTING`)?.[0] ?? "", /-j KUBE-POSTROUTING$/);
    const actions = chains.get(`${program} nat KUBE-POSTROUTING`)?.map((rule) => /-j (\S+)/.exec(rule)?.[1]);
    assert.deepEqual(actions, ["RETURN", "MARK", "MASQUERADE"]);
    assert.equal(chains.get(`${program} filter KUBE-FIREWALL`)?.length, program === "iptables" ? 2 : 1);
  }
  stop.abort();
  await running;
});

test("flushed rules of one IP family are restored within a minute, the other family is not touched", async () => {
  for (const table of ["mangle", "nat", "filter"]) {
    const { chains, calls, run } = tables();
    const stop = new AbortController();
    const clock = newFakeClock();
    const running = keepUtilChains({ ...options, clock, run }, stop.signal);
    await waitFor(() => clock.waiting > 0, { what: "the chains" });
    for (const key of [...chains.keys()]) if (key.startsWith(`ip6tables ${table} `)) chains.delete(key);
    calls.length = 0;
    await clock.advance(60_000);
    await waitFor(() => clock.waiting > 0, { what: "the next look" });
    assert.ok(chains.has(`ip6tables ${table} KUBE-KUBELET-CANARY`), table);
    assert.deepEqual(
      calls.filter((call) => call.startsWith("iptables")).map((call) => call.split(" ")[2]),
      ["mangle", "nat", "filter"],
      "one look at each table",
    );
    stop.abort();
    await running;
  }
});

test("an IP family whose iptables is missing is skipped; without any, the check ends", async () => {
  const { calls, run } = tables(["iptables"]);
  const stop = new AbortController();
  const clock = newFakeClock();
  const running = keepUtilChains({ ...options, clock, run }, stop.signal);
  await waitFor(() => clock.waiting > 0, { what: "the chains" });
  calls.length = 0;
  await clock.advance(60_000);
  await waitFor(() => clock.waiting > 0, { what: "the next look" });
  assert.ok(calls.length > 0 && calls.every((call) => call.startsWith("ip6tables")));
  stop.abort();
  await running;
  await keepUtilChains({ ...options, clock, run: tables(["iptables", "ip6tables"]).run }, new AbortController().signal);
});

/** A separate network namespace; undefined when it cannot be created. */
async function newNamespace(): Promise<string | undefined> {
  const name = `cox-chains-${process.pid}`;
  try {
    await execute("ip", ["netns", "add", name]);
    await execute("ip", ["netns", "exec", name, "iptables", "-w", "-t", "nat", "-L"]);
    return name;
  } catch {
    return undefined;
  }
}

const namespace = await newNamespace();
if (namespace !== undefined) {
  test("the utility chains are created once, and again after a flush", async (t) => {
    t.after(() => execute("ip", ["netns", "del", namespace]));
    const clock = newFakeClock();
    const inside = (...command: string[]) => execute("ip", ["netns", "exec", namespace, ...command]);
    const run: RunCommand = async (program, args) => void (await inside(program, ...args));
    const rules = async (table: string): Promise<string[]> =>
      (await inside("iptables-save", "-t", table)).stdout
        .split("\n")
        .filter((line) => /KUBE|localnet/.test(line) && line[0] === "-");
    const stop = new AbortController();
    const options = { masqueradeBit: 14, dropBit: 15, clock, log: discardLogger, run };
    const running = keepUtilChains(options, stop.signal);
    await waitFor(() => clock.waiting > 0, { what: "the chains" });
    const nat = [
      '-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING',
      "-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000",
      "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
      "-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN",
      "-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0",
      '-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
    ];
    const filter = [
      "-A INPUT -j KUBE-FIREWALL",
      "-A OUTPUT -j KUBE-FIREWALL",
      '-A KUBE-FIREWALL -m comment --comment "kubernetes firewall for dropping marked packets" -m mark --mark 0x8000/0x8000 -j DROP',
      '-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP',
    ];
    assert.deepEqual((await rules("nat")).sort(), nat.sort());
    assert.deepEqual((await rules("filter")).sort(), filter.sort());
    const again = new AbortController();
    const second = keepUtilChains({ ...options, clock: newFakeClock() }, again.signal);
    again.abort();
    await second;
    assert.equal((await rules("nat")).length, nat.length, "what is there is not added again");

    for (const option of ["-F", "-X"]) await inside("iptables", "-t", "nat", option);
    assert.deepEqual(await rules("nat"), []);
    await clock.advance(60_000);
    await waitFor(() => clock.waiting > 0, { what: "the next look" });
    assert.deepEqual((await rules("nat")).sort(), nat.sort());
    stop.abort();
    await running;
  });
}
