import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { causesOf } from "@coxswain/apimachinery/errors/message";
import type { Turns } from "@coxswain/apimachinery/event-loop/turns";
import { newBackoff } from "@coxswain/apimachinery/informers/backoff";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { ObjectKey } from "@coxswain/apimachinery/meta/object-key";
import type { RunProgram } from "../host/run-program.ts";
import { deleteEntries, staleEntries } from "./conntrack.ts";
import { addingJumps, newIptables } from "./iptables.ts";
import type { ProxyMetrics } from "./metrics.ts";
import { portRules, type RuleSettings } from "./port-rules.ts";
import { newRuleSet, type RuleSet, tables } from "./rule-set.ts";
import type { ServicePort } from "./service-port.ts";

export interface ServiceRulesOptions {
  readonly settings: RuleSettings;
  /** All Services that there may be rules for. */
  readonly keys: () => Iterable<ObjectKey>;
  /** The ports of a Service as the caches show it now; none when it is gone. */
  readonly portsOf: (service: ObjectKey) => readonly ServicePort[];
  /** Networks of this node's pods that are masqueraded among each other; see `kernel-settings.ts`. */
  readonly masqueradedNetworks: readonly string[];
  /** How often the kernel is asked whether the rules are still in use. */
  readonly checkPeriodMs: number;
  readonly run: RunProgram;
  readonly turns: Turns;
  readonly metrics: ProxyMetrics;
  readonly log: Logger;
  readonly clock: Clock;
}

/** Keeps the kernel's rules of one IP family as the Services are. */
export interface ServiceRules {
  /** Something about the Service has changed. @param triggers when that happened in the cluster, ms since the epoch */
  changed(service: ObjectKey, triggers?: readonly number[]): void;
  /** Everything is to be planned anew: the node has changed. */
  allChanged(): void;
  /** Writes rules until `signal` is aborted. Failures are retried; does not reject. */
  run(signal: AbortSignal): Promise<void>;
  /** How long the oldest change that the kernel does not have yet has been waiting, in ms; 0 when there is none. */
  lateMs(): number;
  /** @throws Error until the first rules are written, and while the last change could not be */
  check(): void;
}

const retryBackoff = { initialMs: 500, maxMs: 30_000, resetAfterMs: 60_000, factor: 2, jitter: 0.2 };
/** Gathers the changes of one write, such as those of a Service and its EndpointSlices. */
const gatherMs = 20;

export function newServiceRules(options: ServiceRulesOptions): ServiceRules {
  const { settings, run, metrics, log, clock, checkPeriodMs } = options;
  const rules = newRuleSet(settings);
  const iptables = newIptables(settings.family, run);
  const hairpin = newHairpin(rules, options.masqueradedNetworks);
  const written = new Map<ObjectKey, readonly ServicePort[]>();
  let waiting = new Set<ObjectKey>();
  let triggered: number[] = [];
  let stale: string[][] = [];
  let everything = true;
  /** A cluster without IPv6 needs none of these rules. */
  let isDormant = false;
  let failure: string | undefined = "no rules have been written yet";
  let wake = Promise.withResolvers<void>();
  /** Since when a change waits, in ms of the monotonic clock. */
  let waitingSince: number | undefined;

  const plan = async (): Promise<void> => {
    const keys = everything ? new Set([...written.keys(), ...options.keys()]) : waiting;
    waiting = new Set();
    for (const key of keys) {
      const turn = options.turns.next();
      if (turn !== undefined) await turn;
      const before = written.get(key) ?? [];
      const ports = options.portsOf(key);
      stale.push(...staleEntries(before, ports, settings.family));
      if (ports.length === 0) written.delete(key);
      else written.set(key, ports);
      hairpin.replace(before, ports);
      rules.set(
        key,
        ports.map((port) => portRules(port, settings)),
      );
    }
    hairpin.put();
  };
  /** @returns false when nothing is there to be written, and nothing to be removed */
  const learn = async (): Promise<boolean> => {
    const existing = await iptables.chains(settings.prefix);
    rules.forget(existing);
    return settings.family === "IPv4" || written.size > 0 || [...existing.values()].some((chains) => chains.length > 0);
  };
  const write = async (): Promise<void> => {
    if (isDormant && written.size === 0) return;
    if (isDormant || everything) {
      everything = true;
      isDormant = !(await learn());
      if (isDormant) {
        everything = false;
        return;
      }
    }
    const input = rules.pending();
    if (input !== undefined) await iptables.restore(input.text);
    input?.written();
    if (everything) await addMissingJumps();
    everything = false;
    if (stale.length === 0) return;
    const filters = stale;
    stale = [];
    await deleteEntries(filters, run).catch((err: unknown) => log.error("cannot delete entries of the connection table", err));
  };
  const addMissingJumps = async (): Promise<void> => {
    const missing = await iptables.missing(rules.jumps);
    if (missing.length > 0) await iptables.restore(addingJumps(missing));
  };
  const sync = async (): Promise<void> => {
    const triggers = triggered;
    triggered = [];
    const begun = clock.monotonic();
    try {
      await plan();
      await write();
    } catch (err) {
      metrics.restoreFailures.inc();
      everything = true; // what the kernel has is not known
      triggered.push(...triggers);
      throw err;
    }
    waitingSince = waiting.size > 0 ? begun : undefined;
    metrics.syncSeconds.observe((clock.monotonic() - begun) / 1000);
    metrics.lastSync.set(clock.now() / 1000);
    for (const at of triggers) metrics.programmingSeconds.observe(Math.max(0, clock.now() - at) / 1000);
    if (settings.family === "IPv4") for (const table of tables) metrics.rules.labels(table).set(rules.count(table));
  };
  const wakeUp = (): void => {
    waitingSince ??= clock.monotonic();
    metrics.lastQueued.set(clock.now() / 1000);
    wake.resolve();
  };
  const checkKernel = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      await clock.sleep(checkPeriodMs, signal).catch(() => {});
      if (signal.aborted || isDormant || failure !== undefined) continue;
      const missing = await iptables.missing(rules.jumps).catch(() => rules.jumps);
      if (missing.length === 0) continue;
      log.warn("rules are missing in the kernel, writing all of them", { missing: missing.map(({ from }) => from).join() });
      everything = true;
      wakeUp();
    }
  };

  return {
    changed(service, triggers = []) {
      waiting.add(service);
      triggered.push(...triggers);
      wakeUp();
    },
    allChanged() {
      for (const key of [...written.keys(), ...options.keys()]) waiting.add(key);
      wakeUp();
    },
    async run(signal) {
      const backoff = newBackoff({ ...retryBackoff, clock });
      const checking = checkKernel(signal);
      while (!signal.aborted) {
        wake = Promise.withResolvers();
        const begun = clock.monotonic();
        let pauseMs = gatherMs;
        try {
          await sync();
          failure = undefined;
          // Where a write takes long it leaves the machine as much time to others.
          pauseMs = Math.max(gatherMs, Math.min(clock.monotonic() - begun, 500));
        } catch (err) {
          if (signal.aborted) break;
          failure = causesOf(err);
          pauseMs = backoff.next();
          wake.resolve();
          log.error("cannot write the rules of Services; trying again", err, {
            family: settings.family,
            afterMs: Math.round(pauseMs),
          });
        }
        const stop = (): void => wake.resolve();
        signal.addEventListener("abort", stop, { once: true });
        await wake.promise;
        signal.removeEventListener("abort", stop);
        await clock.sleep(pauseMs, signal).catch(() => {});
      }
      await checking;
    },
    lateMs: () => (waitingSince === undefined ? 0 : clock.monotonic() - waitingSince),
    check() {
      if (failure !== undefined) throw new Error(failure);
    },
  };
}

/**
 * Rules for pods that reach themselves through a Service: without masquerading, the pod would get a packet from its own address. Only
 * the endpoints of this node matter.
 */
function newHairpin(rules: RuleSet, masqueradedNetworks: readonly string[]) {
  const users = new Map<string, number>();
  let hasChanged = masqueradedNetworks.length > 0;
  const count = (ports: readonly ServicePort[], by: 1 | -1): void => {
    for (const { localEndpoints } of ports) {
      for (const endpoint of localEndpoints) {
        const ip = endpoint.slice(0, endpoint.lastIndexOf(":")).replace(/^\[|\]$/g, "");
        const before = users.get(ip) ?? 0;
        if (before + by === 0) users.delete(ip);
        else users.set(ip, before + by);
        hasChanged ||= before === 0 || before + by === 0;
      }
    }
  };
  return {
    replace(before: readonly ServicePort[], after: readonly ServicePort[]): void {
      count(after, 1);
      count(before, -1);
    },
    put(): void {
      if (!hasChanged) return;
      hasChanged = false;
      rules.setHairpin([
        ...masqueradedNetworks.map((network) => `-s ${network} -d ${network} -j MASQUERADE`),
        ...[...users.keys()].sort().map((ip) => `-s ${ip} -d ${ip} -j MASQUERADE`),
      ]);
    },
  };
}
