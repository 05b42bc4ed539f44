import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { hostAt } from "./host.ts";

/** A machine with these parameters of the kernel, by their paths below /proc/sys/net. */
function aMachine(t: TestContext, parameters: Record<string, string>) {
  const root = mkdtempSync(join(tmpdir(), "cox-host-"));
  t.after(() => rmSync(root, { recursive: true }));
  const file = (name: string): string => join(root, "proc/sys/net", name);
  for (const [name, value] of Object.entries(parameters)) {
    mkdirSync(dirname(file(name)), { recursive: true });
    writeFileSync(file(name), `${value}\n`);
  }
  const state = (): Record<string, string> =>
    Object.fromEntries(Object.keys(parameters).map((name) => [name, readFileSync(file(name), "utf8").trim()]));
  return { host: hostAt(root, async () => ""), state };
}

test("each family's packets are forwarded by its own parameter", async (t) => {
  const off = { "ipv4/ip_forward": "0", "ipv6/conf/all/forwarding": "0", "ipv6/conf/all/accept_ra": "0" };
  const four = aMachine(t, off);
  await four.host.forward(4);
  assert.deepEqual(four.state(), { ...off, "ipv4/ip_forward": "1" });
  const six = aMachine(t, off);
  await six.host.forward(6);
  assert.deepEqual(six.state(), { ...off, "ipv6/conf/all/forwarding": "1" });
});

test("interfaces that take router advertisements go on to do so when IPv6 packets are forwarded; others do not begin", async (t) => {
  const before = {
    "ipv6/conf/all/accept_ra": "1",
    "ipv6/conf/eth0/accept_ra": "1",
    "ipv6/conf/eth1/accept_ra": "0",
    "ipv6/conf/eth2/accept_ra": "2",
  };
  const { host, state } = aMachine(t, { "ipv6/conf/all/forwarding": "0", ...before });
  await host.forward(6);
  assert.deepEqual(state(), {
    ...before,
    ...{ "ipv6/conf/all/forwarding": "1", "ipv6/conf/all/accept_ra": "2", "ipv6/conf/eth0/accept_ra": "2" },
  });
});

test("a machine has IPv6 when the kernel has it, and takes rules of it", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "cox-host-"));
  t.after(() => rmSync(root, { recursive: true }));
  const calls: string[] = [];
  const takes = hostAt(root, async (program, args) => {
    calls.push([program, ...args].join(" "));
    return "";
  });
  assert.equal(await takes.hasIpv6(), false);
  mkdirSync(join(root, "proc/net"), { recursive: true });
  writeFileSync(join(root, "proc/net/if_inet6"), "");
  assert.equal(await takes.hasIpv6(), true);
  assert.deepEqual(
    calls,
    ["ip6tables -w 5 -t nat -S OUTPUT"],
    "the table that Services and pods need, not before the kernel has IPv6",
  );
  assert.equal(await hostAt(root, () => Promise.reject(new Error("unknown table"))).hasIpv6(), false);
});

test("a machine that forwards already keeps its settings, as an administrator made them", async (t) => {
  const parameters = { "ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1", "ipv6/conf/all/accept_ra": "1" };
  const { host, state } = aMachine(t, parameters);
  await host.forward(4);
  await host.forward(6);
  assert.deepEqual(state(), parameters);
});
