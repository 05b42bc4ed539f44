import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { hasIpv6, prepareKernel, restoreLoopbackRouting, setConntrackTimeouts } from "./kernel-settings.ts";

const close = "nf_conntrack_tcp_timeout_close_wait";
const established = "nf_conntrack_tcp_timeout_established";
const day = { establishedMs: 86_400_000, closeWaitMs: 3_600_000 };

/** A root folder with /proc/sys/net/netfilter: the kernel's defaults, unless the module is not loaded. */
function startKernel(t: TestContext, { isLoaded = true, canLoad = true } = {}) {
  const root = mkdtempSync(join(tmpdir(), "cox-conntrack-"));
  t.after(() => rmSync(root, { recursive: true }));
  const folder = join(root, "proc/sys/net/netfilter");
  mkdirSync(folder, { recursive: true });
  const load = (): void => {
    writeFileSync(join(folder, established), "432000\n");
    writeFileSync(join(folder, close), "60\n");
  };
  if (isLoaded) load();
  const calls: string[] = [];
  const errors: string[] = [];
  const host = {
    root,
    async run(program: string, args: readonly string[]) {
      calls.push([program, ...args].join(" "));
      if (!canLoad) throw new Error("modprobe: no such module");
      load();
      return "";
    },
  };
  const log = { ...discardLogger, error: (message: string) => void errors.push(message) };
  return { host, log, calls, errors, read: (name: string) => readFileSync(join(folder, name), "utf8").trim() };
}

test("the timeouts of TCP connections are set, in whole seconds", async (t) => {
  const { host, log, read, calls } = startKernel(t);
  await setConntrackTimeouts({ ...day, closeWaitMs: 3_600_999 }, host, log);
  assert.deepEqual([read(established), read(close), calls], ["86400", "3600", []]);
});

test("0 leaves a timeout as it is", async (t) => {
  const { host, log, read } = startKernel(t);
  await setConntrackTimeouts({ ...day, establishedMs: 0 }, host, log);
  assert.deepEqual([read(established), read(close)], ["432000", "3600"]);
});

test("the module is loaded first where it is missing", async (t) => {
  const { host, log, read, calls } = startKernel(t, { isLoaded: false });
  await setConntrackTimeouts(day, host, log);
  assert.deepEqual([read(established), read(close), calls], ["86400", "3600", ["modprobe nf_conntrack"]]);
});

test("a kernel without connection tracking is an error in the log, and the rules are written all the same", async (t) => {
  const { host, log, errors } = startKernel(t, { isLoaded: false, canLoad: false });
  await setConntrackTimeouts(day, host, log);
  assert.deepEqual(errors, ["cannot set a kernel parameter", "cannot set a kernel parameter"]);
});

const [forwards, loopback, bridge] = [
  "proc/sys/net/ipv4/ip_forward",
  "proc/sys/net/ipv4/conf/all/route_localnet",
  "proc/sys/net/bridge/bridge-nf-call-iptables",
];
const mark = "run/coxswain-services.route_localnet";

/** A root folder with the parameters that the rules require. @param bridgeModule whether modprobe finds br_netfilter */
function aMachine(t: TestContext, { routesLoopback = "0", bridgeModule = true } = {}) {
  const root = mkdtempSync(join(tmpdir(), "cox-kernel-"));
  t.after(() => rmSync(root, { recursive: true }));
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  };
  write(forwards, "0\n");
  write(loopback, `${routesLoopback}\n`);
  mkdirSync(join(root, "run"));
  const calls: string[] = [];
  const state = { filter: "" };
  const run = async (program: string, args: readonly string[]): Promise<string> => {
    calls.push([program, ...args].join(" "));
    if (program === "iptables-save") return state.filter;
    if (program === "modprobe" && !bridgeModule) throw new Error("modprobe: module br_netfilter not found");
    if (program === "modprobe") write(bridge, "0\n");
    return "";
  };
  const read = (file: string): string => readFileSync(join(root, file), "utf8").trim();
  return { root, run, write, read, calls, state, isMarked: () => existsSync(join(root, mark)) };
}

test("forwarding, rules for packets of bridges and routing of loopback are turned on; the last is marked as this program's", async (t) => {
  const machine = aMachine(t);
  assert.equal(await prepareKernel(true, machine, discardLogger), true);
  assert.deepEqual([forwards, loopback, bridge].map(machine.read), ["1", "1", "1"]);
  assert.deepEqual([machine.calls, machine.isMarked()], [["modprobe br_netfilter"], true]);
  assert.equal(await prepareKernel(true, machine, discardLogger), true);
  assert.equal(machine.calls.length, 1, "a module that is there is not loaded");
});

test("without node ports on loopback it is not routed; without the bridge module its lack is reported", async (t) => {
  const machine = aMachine(t, { bridgeModule: false });
  assert.equal(await prepareKernel(false, machine, discardLogger), false);
  assert.deepEqual([machine.read(forwards), machine.read(loopback), machine.isMarked()], ["1", "0", false]);
});

test("a parameter of bridges that cannot be set is as one that is not there", async (t) => {
  const machine = aMachine(t);
  machine.write(`${bridge}/file`, "a folder in its place");
  const errors: unknown[] = [];
  const log = { ...discardLogger, error: (...all: unknown[]) => void errors.push(all[2]) };
  assert.equal(await prepareKernel(false, machine, log), false);
  assert.deepEqual([errors, machine.calls], [[{ file: join(machine.root, bridge) }], []]);
});

test("the routing of loopback is turned off by who turned it on, and only without rules that protect it", async (t) => {
  const machine = aMachine(t);
  await prepareKernel(true, machine, discardLogger);
  machine.state.filter = "-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -j DROP\n";
  await restoreLoopbackRouting(machine.run, machine.root);
  assert.deepEqual([machine.read(loopback), machine.isMarked()], ["1", true], "another program relies on it");
  machine.state.filter = "";
  await restoreLoopbackRouting(machine.run, machine.root);
  assert.deepEqual([machine.read(loopback), machine.isMarked()], ["0", false]);
  machine.write(loopback, "1");
  await restoreLoopbackRouting(machine.run, machine.root);
  assert.equal(machine.read(loopback), "1", "of somebody else, since");

  const other = aMachine(t, { routesLoopback: "1" });
  await prepareKernel(true, other, discardLogger);
  await restoreLoopbackRouting(other.run, other.root);
  assert.equal(other.read(loopback), "1", "it was on before");
});

test("a machine has IPv6 when the kernel has addresses and rules of it", async (t) => {
  const { root, run, write } = aMachine(t);
  assert.equal(await hasIpv6(run, root), false);
  write("proc/net/if_inet6", "");
  assert.equal(await hasIpv6(run, root), true);
  assert.equal(await hasIpv6(() => Promise.reject(new Error("no table nat")), root), false);
});
