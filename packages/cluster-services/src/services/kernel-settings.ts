import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { type RunProgram, runProgram } from "../host/run-program.ts";

const forwards = "proc/sys/net/ipv4/ip_forward";
const routeLoopback = "proc/sys/net/ipv4/conf/all/route_localnet";
/** Marker file that exists until the next boot: this program has made the kernel route 127.0.0.0/8. */
const routesLoopbackMark = "run/coxswain-services.route_localnet";
const bridgeCalls = "proc/sys/net/bridge/bridge-nf-call-iptables";
const conntrackFolder = "proc/sys/net/netfilter";

/** A machine. Tests give a folder in place of its root folder. */
export interface KernelHost {
  readonly run: RunProgram;
  readonly root: string;
}

export const thisMachine: KernelHost = { run: runProgram, root: "/" };

/**
 * Sets the kernel parameters that the rules require.
 * @returns whether packets between ports of a bridge pass the rules (module br_netfilter). If not, replies between pods of a node
 * bypass the rules that have to restore the Service's address, unless the connection is masqueraded
 */
export async function prepareKernel(localhostNodePorts: boolean, { run, root }: KernelHost, log: Logger): Promise<boolean> {
  set(join(root, forwards), log);
  const loopback = join(root, routeLoopback);
  // Else a packet from 127.0.0.1 to a node port cannot leave for its endpoint.
  if (localhostNodePorts && !isSet(loopback) && set(loopback, log)) writeFileSync(join(root, routesLoopbackMark), "");
  const bridge = join(root, bridgeCalls);
  if (!existsSync(bridge)) await run("modprobe", ["br_netfilter"]).catch(() => ""); // built in, or not there
  return existsSync(bridge) && set(bridge, log);
}

interface ConntrackTimeouts {
  readonly establishedMs: number;
  readonly closeWaitMs: number;
}

/**
 * Sets how long the kernel's connection table keeps TCP connections that are idle (established), or that one side has closed
 * (close wait): after the kernel's default of 60 s for the latter, a half-closed connection through a Service would be lost.
 * Source: cmd/kube-proxy/app/server_others.go
 * @param timeouts 0 leaves the kernel's value
 */
export async function setConntrackTimeouts(
  { establishedMs, closeWaitMs }: ConntrackTimeouts,
  { run, root }: KernelHost,
  log: Logger,
): Promise<void> {
  const wanted = { established: establishedMs, close_wait: closeWaitMs };
  for (const [state, ms] of Object.entries(wanted)) {
    if (ms === 0) continue;
    const file = join(root, conntrackFolder, `nf_conntrack_tcp_timeout_${state}`);
    if (!existsSync(file)) await run("modprobe", ["nf_conntrack"]).catch(() => "");
    set(file, log, String(Math.trunc(ms / 1000)));
  }
}

const isSet = (file: string, value = "1"): boolean => readFileSync(file, "utf8").trim() === value;

function set(file: string, log: Logger, value = "1"): boolean {
  try {
    if (!isSet(file, value)) writeFileSync(file, value);
    return true;
  } catch (err) {
    log.error("cannot set a kernel parameter", err, { file });
    return false;
  }
}

/**
 * Turns the routing of 127.0.0.0/8 that `prepareKernel` enabled off again, unless rules that protect it remain: those of another
 * cluster or of kube-proxy may still need it.
 */
export async function restoreLoopbackRouting(run: RunProgram, root = "/"): Promise<void> {
  const mark = join(root, routesLoopbackMark);
  if (!existsSync(mark)) return;
  const rules = await run("iptables-save", ["-t", "filter"]);
  if (rules.includes("! -s 127.0.0.0/8 -d 127.0.0.0/8")) return;
  writeFileSync(join(root, routeLoopback), "0");
  rmSync(mark, { force: true });
}

/** Whether the machine has IPv6 and its rules. */
export async function hasIpv6(run: RunProgram, root = "/"): Promise<boolean> {
  if (!existsSync(join(root, "proc/net/if_inet6"))) return false;
  return run("ip6tables", ["-w", "5", "-t", "nat", "-S", "OUTPUT"]).then(
    () => true,
    () => false,
  );
}
