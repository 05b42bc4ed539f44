import { newBackoff } from "@coxswain/apimachinery/informers/backoff";
import { causesOf } from "@coxswain/apimachinery/objects/errors/message";
import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { RunProgram } from "../host/run-program.ts";
import { deleteEntries, staleEntries } from "./conntrack.ts";
import { addingJumps, newIptables } from "./iptables.ts";
import type { ProxyMetrics } from "./metrics.ts";
import { type PortRules, portRules, type RuleSettings } from "./port-rules.ts";
import { findRefused, isRefusal } from "./refused.ts";
import { RuleSet, tables } from "./rule-set.ts";
import { destinationsOf, mostDestinations, type ServicePort } from "./service-port.ts";

interface ServiceRulesOptions {
  readonly settings: RuleSettings;
  /** All Services that there may be rules for. */
  readonly keys: () => Iterable<ObjectKey>;
  /** The ports of a Service as the caches show it now; none when it is gone. */
  readonly portsOf: (service: ObjectKey) => readonly ServicePort[];
  /** Networks of this node's pods that are masqueraded among each other; see `kernel-settings.ts`. */
  readonly masqueradedNetworks: readonly string[];
  /** How often it is checked that the kernel's rules are still in use. */
  readonly checkPeriodMs: number;
  /** The rules of a Service are refused; it has none until they change or are accepted. Called once for each reason. */
  readonly onRefused: (service: ObjectKey, reason: string) => void;
  readonly run: RunProgram;
  readonly turns: Turns;
  readonly metrics: ProxyMetrics;
  readonly log: Logger;
  readonly clock: Clock;
}

const retryBackoff = { initialMs: 500, maxMs: 30_000, resetAfterMs: 60_000, factor: 2, jitter: 0.2 };
/** Number of periodic checks after which refused rules are tried again. */
const checksUntilRetry = 10;
/** Delay before a write, so that related changes, such as those of a Service and its EndpointSlices, are written together. */
const gatherMs = 20;

/** Times of changes that are kept for a metric while rules cannot be written. */
const mostTriggers = 10_000;

/** The ports of a Service that the kernel has, and those that it is to have. */
interface Change {
  readonly key: ObjectKey;
  readonly before: readonly ServicePort[];
  readonly now: readonly ServicePort[];
}

const noPorts = (): readonly ServicePort[] => [];

/** Keeps the kernel's rules of one IP family in line with the Services. */
export class ServiceRules {
  readonly #options: ServiceRulesOptions;
  readonly #rules: RuleSet;
  readonly #iptables: ReturnType<typeof newIptables>;
  readonly #hairpin: ReturnType<typeof newHairpin>;
  readonly #written = new Map<ObjectKey, readonly ServicePort[]>();
  /** Services whose rules were refused: for which ports, and why. */
  readonly #refused = new Map<ObjectKey, { readonly ports: string; readonly reason: string }>();
  /** Services of more destinations than `mostDestinations`. */
  readonly #tooLarge = new Set<ObjectKey>();
  #triesRefused = false;
  #waiting = new Set<ObjectKey>();
  #triggered: number[] = [];
  #stale: string[][] = [];
  #everything = true;
  /** True while there is nothing to write or to remove, as for IPv6 in a cluster without it. */
  #isDormant = false;
  #failure: string | undefined = "no rules have been written yet";
  #wake = Promise.withResolvers<void>();
  /** Since when a change waits, in ms of the monotonic clock. */
  #waitingSince: number | undefined;

  constructor(options: ServiceRulesOptions) {
    this.#options = options;
    this.#rules = new RuleSet(options.settings);
    this.#iptables = newIptables(options.settings.family, options.run);
    this.#hairpin = newHairpin(this.#rules, options.masqueradedNetworks);
  }

  /** @returns the changes to write; `doubtful` are those of Services whose earlier rules were refused, and which have no rules yet */
  async #plan(everything: boolean): Promise<{ changes: Change[]; doubtful: Change[] }> {
    const keys = everything ? new Set([...this.#written.keys(), ...this.#options.keys()]) : this.#waiting;
    if (everything) for (const key of this.#refused.keys()) keys.add(key);
    this.#waiting = new Set();
    const triesRefused = this.#triesRefused;
    this.#triesRefused = false;
    const changes: Change[] = [];
    const doubtful: Change[] = [];
    for (const key of keys) {
      const turn = this.#options.turns.next();
      if (turn !== undefined) await turn;
      const change = { key, before: this.#written.get(key) ?? [], now: this.#portsOf(key) };
      const refused = this.#refused.get(key);
      if (refused === undefined) {
        changes.push(change);
        await this.#set(key, change.now);
      } else if (triesRefused || refused.ports !== JSON.stringify(change.now)) doubtful.push(change);
    }
    this.#hairpin.put();
    return { changes, doubtful };
  }

  /** The ports of the Service; none when they need too many rules. */
  #portsOf(key: ObjectKey): readonly ServicePort[] {
    const ports = this.#options.portsOf(key);
    const count = destinationsOf(ports);
    if (count <= mostDestinations) {
      this.#tooLarge.delete(key);
      return ports;
    }
    if (!this.#tooLarge.has(key)) {
      this.#tooLarge.add(key);
      const reason = `its ports on its addresses are ${count} destinations, more than ${mostDestinations}`;
      this.#options.log.warn("a Service needs too many rules; it has none until it changes", { service: key, reason });
      this.#options.onRefused(key, reason);
    }
    return [];
  }

  async #set(key: ObjectKey, ports: readonly ServicePort[]): Promise<void> {
    const before = this.#written.get(key) ?? [];
    const rules: PortRules[] = [];
    for (const port of ports) {
      const turn = this.#options.turns.next();
      if (turn !== undefined) await turn;
      rules.push(portRules(port, this.#options.settings));
    }
    this.#stale.push(...staleEntries(before, ports, this.#options.settings.family));
    if (ports.length === 0) this.#written.delete(key);
    else this.#written.set(key, ports);
    this.#hairpin.replace(before, ports);
    this.#rules.set(key, rules);
  }

  /** @returns false when there is nothing to write or remove */
  async #learn(): Promise<boolean> {
    const existing = await this.#iptables.chains(this.#options.settings.prefix);
    this.#rules.forget(existing);
    return (
      this.#options.settings.family === "IPv4" ||
      this.#written.size > 0 ||
      [...existing.values()].some((chains) => chains.length > 0)
    );
  }

  async #restore(text: string): Promise<void> {
    try {
      await this.#iptables.restore(text);
    } catch (err) {
      this.#options.metrics.restoreFailures.inc();
      throw err;
    }
  }

  async #commit(): Promise<void> {
    const input = this.#rules.pending();
    if (input !== undefined) await this.#restore(input.text);
    input?.written();
  }

  /** Writes Services with other ports. @returns the refusal */
  async #attempt(changes: readonly Change[], ports: (change: Change) => readonly ServicePort[]): Promise<Error | undefined> {
    for (const change of changes) await this.#set(change.key, ports(change));
    this.#hairpin.put();
    try {
      await this.#commit();
    } catch (err) {
      if (!isRefusal(err)) throw err;
      return err;
    }
  }

  /**
   * After a refusal: finds the changes that are refused and writes all others. Until then Services keep their earlier rules, if the
   * kernel accepts those.
   * @param anew whether the refused text contained all chains, and so did not depend on the chains in the kernel
   * @throws the refusal when the changes are not its cause
   */
  async #commitAccepted(changes: readonly Change[], refusal: Error, anew: boolean): Promise<void> {
    let earlier = ({ before }: Change): readonly ServicePort[] => before;
    // Another program may have removed a chain; then the changes are not the cause.
    if (!anew) await this.#learn();
    if ((await this.#attempt(changes, earlier)) !== undefined) {
      if (!anew) throw refusal;
      earlier = noPorts;
      if ((await this.#attempt(changes, noPorts)) !== undefined) throw refusal;
    }
    const refused = await findRefused(changes, refusal, async (some) => {
      const reason = await this.#attempt(some, ({ now }) => now);
      if (reason !== undefined) for (const change of some) await this.#set(change.key, earlier(change));
      return reason;
    });
    const again = await this.#attempt([...refused.keys()], noPorts);
    if (again !== undefined) throw again;
    for (const [change, reason] of refused) this.#noteRefused(change, causesOf(reason));
  }

  /** Services that were refused before are written one by one, so that they do not fail the write of others. */
  async #tryDoubtful(doubtful: readonly Change[]): Promise<void> {
    for (const change of doubtful) {
      const reason = await this.#attempt([change], ({ now }) => now);
      if (reason === undefined) this.#refused.delete(change.key);
      else {
        await this.#set(change.key, []);
        this.#noteRefused(change, causesOf(reason));
      }
    }
    this.#hairpin.put();
  }

  #noteRefused({ key, now }: Change, reason: string): void {
    const before = this.#refused.get(key);
    this.#refused.set(key, { ports: JSON.stringify(now), reason });
    if (before?.reason === reason) return;
    this.#options.log.warn("iptables refused the rules of a Service; it has none until it changes", { service: key, reason });
    this.#options.onRefused(key, reason);
  }

  async #write(everything: boolean, changes: readonly Change[]): Promise<void> {
    if (this.#isDormant && this.#written.size === 0) return;
    const anew = this.#isDormant || everything;
    if (anew) {
      this.#isDormant = !(await this.#learn());
      if (this.#isDormant) return;
    }
    try {
      await this.#commit();
    } catch (err) {
      if (!isRefusal(err)) throw err;
      await this.#commitAccepted(changes, err, anew);
    }
    if (anew) await this.#addMissingJumps();
    if (this.#stale.length === 0) return;
    const filters = this.#stale;
    this.#stale = [];
    await deleteEntries(filters, this.#options.run).catch((err: unknown) =>
      this.#options.log.error("cannot delete entries of the connection table", err),
    );
  }

  async #addMissingJumps(): Promise<void> {
    const missing = await this.#iptables.missing(this.#rules.jumps);
    if (missing.length > 0) await this.#restore(addingJumps(missing));
  }

  async #sync(): Promise<void> {
    const triggers = this.#triggered;
    this.#triggered = [];
    // The check of the kernel's rules may request all of them while this write is running: that applies to the next write.
    const everything = this.#everything;
    this.#everything = false;
    const begun = this.#options.clock.monotonic();
    try {
      const { changes, doubtful } = await this.#plan(everything);
      await this.#write(everything, changes);
      await this.#tryDoubtful(doubtful);
    } catch (err) {
      this.#everything = true; // what the kernel has is not known
      this.#triggered.push(...triggers);
      throw err;
    }
    this.#waitingSince = this.#waiting.size > 0 ? begun : undefined;
    this.#options.metrics.syncSeconds.observe((this.#options.clock.monotonic() - begun) / 1000);
    this.#options.metrics.lastSync.set(this.#options.clock.now() / 1000);
    for (const at of triggers)
      this.#options.metrics.programmingSeconds.observe(Math.max(0, this.#options.clock.now() - at) / 1000);
    this.#options.metrics.refused.labels(this.#options.settings.family).set(this.#refused.size + this.#tooLarge.size);
    if (this.#options.settings.family === "IPv4")
      for (const table of tables) this.#options.metrics.rules.labels(table).set(this.#rules.count(table));
  }

  #wakeUp(): void {
    this.#waitingSince ??= this.#options.clock.monotonic();
    this.#options.metrics.lastQueued.set(this.#options.clock.now() / 1000);
    this.#wake.resolve();
  }

  async #checkKernel(signal: AbortSignal): Promise<void> {
    for (let checks = 1; !signal.aborted; checks++) {
      await this.#options.clock.sleep(this.#options.checkPeriodMs, signal).catch(() => {});
      if (checks % checksUntilRetry === 0 && this.#refused.size > 0) this.#tryRefused();
      if (signal.aborted || this.#isDormant || this.#failure !== undefined) continue;
      const missing = await this.#iptables.missing(this.#rules.jumps).catch(() => this.#rules.jumps);
      if (missing.length === 0) continue;
      this.#options.log.warn("rules are missing in the kernel, writing all of them", {
        missing: missing.map(({ from }) => from).join(),
      });
      this.#everything = true;
      this.#wakeUp();
    }
  }

  /** A refusal may be temporary, for example when a kernel module was missing. */
  #tryRefused(): void {
    this.#triesRefused = true;
    for (const key of this.#refused.keys()) this.#waiting.add(key);
    this.#wakeUp();
  }

  /** Something about the Service has changed. @param triggers when that happened in the cluster, ms since the epoch */
  changed(service: ObjectKey, triggers: readonly number[] = []): void {
    this.#waiting.add(service);
    if (this.#triggered.length < mostTriggers) this.#triggered.push(...triggers);
    this.#wakeUp();
  }

  /** All rules are to be planned again: the node has changed. */
  allChanged(): void {
    for (const key of [...this.#written.keys(), ...this.#options.keys()]) this.#waiting.add(key);
    this.#wakeUp();
  }

  /** Writes rules until `signal` is aborted. Failures are retried; does not reject. */
  async run(signal: AbortSignal): Promise<void> {
    const backoff = newBackoff({ ...retryBackoff, clock: this.#options.clock });
    const checking = this.#checkKernel(signal);
    while (!signal.aborted) {
      this.#wake = Promise.withResolvers();
      const begun = this.#options.clock.monotonic();
      let pauseMs = gatherMs;
      try {
        await this.#sync();
        this.#failure = undefined;
        // After a write, waits as long as the write took, so that slow writes use at most half of the time.
        pauseMs = Math.max(gatherMs, Math.min(this.#options.clock.monotonic() - begun, 500));
      } catch (err) {
        if (signal.aborted) break;
        this.#failure = causesOf(err);
        pauseMs = backoff.next();
        this.#wake.resolve();
        this.#options.log.error("cannot write the rules of Services; trying again", err, {
          family: this.#options.settings.family,
          afterMs: Math.round(pauseMs),
        });
      }
      const stop = (): void => this.#wake.resolve();
      signal.addEventListener("abort", stop, { once: true });
      if (signal.aborted) stop(); // during the last write
      await this.#wake.promise;
      signal.removeEventListener("abort", stop);
      await this.#options.clock.sleep(pauseMs, signal).catch(() => {});
    }
    await checking;
  }

  /** How long the oldest change that the kernel does not have yet has been waiting, in ms; 0 when there is none. */
  lateMs(): number {
    return this.#waitingSince === undefined ? 0 : this.#options.clock.monotonic() - this.#waitingSince;
  }

  /** @throws Error until the first rules are written, and while the last change could not be */
  check(): void {
    if (this.#failure !== undefined) throw new Error(this.#failure);
  }
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
