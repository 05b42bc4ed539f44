import { isIPv4 } from "node:net";
import type { Client } from "@coxswain/apimachinery/client/client";
import { runLeaderElection } from "@coxswain/apimachinery/controller/leader-election";
import { newResourceLock } from "@coxswain/apimachinery/controller/resource-lock";
import type { Reconnection } from "@coxswain/apimachinery/informers/reconnection";
import { causesOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { readLinks } from "../pod-network/kernel-state.ts";
import type { Link } from "../pod-network/plan.ts";
import { addingJumps, newIptables } from "../services/iptables.ts";
import { type AddressHost, announce, bindAddresses, linkFor, prepareLink, unbindAddress } from "./local-addresses.ts";
import type { AnnouncerMetrics } from "./metrics.ts";
import { leaseNamespace } from "./names.ts";
import { leaseName } from "./pool.ts";
import { addressRules, hasRules } from "./rules.ts";

interface AnnouncerOptions {
  readonly client: Client;
  /** Unique name of this process. */
  readonly identity: string;
  readonly host: AddressHost;
  /** Addresses of this Node. */
  readonly nodeAddresses: () => readonly string[];
  readonly chainPrefix: string;
  readonly metrics: AnnouncerMetrics;
  readonly reconnection: Reconnection;
  readonly log: Logger;
  readonly clock: Clock;
}

/**
 * A node that is cut off releases its addresses 4 s to 6 s after its last renewal; another one takes them 6 s to 8 s after it. When
 * the process is killed, the kernel removes its addresses after 5 s at most (`lifetimeSeconds`).
 */
const lease = { leaseDurationMs: 6_000, renewDeadlineMs: 4_000, retryPeriodMs: 1_500 };
const lifetimeSeconds = 5;
const refreshMs = 1_500;
/** Announcements may be lost. */
const announcements = 3;

/** Answers for addresses on this node's network, each while the node holds the address's lease. */
export class Announcer {
  readonly #options: AnnouncerOptions;
  /** By address: ends its candidacy. */
  readonly #candidacies = new Map<string, { readonly end: AbortController; readonly ended: Promise<void> }>();
  /** By address: its interface. */
  readonly #held = new Map<string, string>();
  readonly #failures = new Map<string, string>();
  #wanted: ReadonlySet<string> = new Set();
  /** The addresses in the rules; undefined while those of an earlier process may be there. */
  #rulesOf: string | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: AnnouncerOptions) {
    this.#options = options;
  }

  /** Sets for which addresses this node is a candidate, until `signal` is aborted. */
  set(addresses: ReadonlySet<string>, signal: AbortSignal): void {
    this.#wanted = addresses;
    for (const [ip, { end }] of this.#candidacies) if (!addresses.has(ip)) end.abort(new Error("no longer wanted"));
    for (const ip of addresses) {
      if (this.#candidacies.has(ip) || signal.aborted) continue;
      const end = new AbortController();
      const ended = this.#stand(ip, AbortSignal.any([signal, end.signal])).finally(() => {
        this.#candidacies.delete(ip);
        this.#failures.delete(ip);
        if (this.#wanted.has(ip)) this.set(this.#wanted, signal); // again, while its candidacy was ending
      });
      this.#candidacies.set(ip, { end, ended });
    }
  }

  /** @throws Error with the addresses that this node has to answer for and cannot */
  check(): void {
    if (this.#failures.size > 0) throw new Error([...this.#failures].map(([ip, reason]) => `${ip}: ${reason}`).join("; "));
  }

  /** Keeps the addresses that this node holds until `signal` is aborted and all of them are given up. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    while (!signal.aborted) {
      await clock.sleep(refreshMs, signal).catch(() => {});
      if (signal.aborted) break;
      if (this.#held.size > 0) await this.#refresh();
      else if (this.#rulesOf === undefined)
        await this.#writeRules().catch((err: unknown) => log.error("cannot remove rules of an earlier process", err));
    }
    await Promise.all([...this.#candidacies.values()].map(({ ended }) => ended));
    await this.#writing;
  }

  async #stand(ip: string, signal: AbortSignal): Promise<void> {
    const { client, identity, reconnection, log, clock, metrics } = this.#options;
    while (!signal.aborted) {
      let holding: Promise<void> = Promise.resolve();
      await runLeaderElection({
        ...{ ...lease, client, identity, reconnection, log, clock, signal },
        lock: newResourceLock("leases", leaseNamespace, leaseName(ip)),
        releaseOnCancel: true,
        onStarted: (leading) => {
          metrics.takeovers.inc();
          holding = this.#hold(ip, AbortSignal.any([signal, leading]));
        },
      }).catch((err: unknown) => log.error("cannot acquire the lease of an address", err, { address: ip }));
      await holding;
      await clock.sleep(signal.aborted ? 0 : lease.retryPeriodMs, signal).catch(() => {});
    }
  }

  /** While the lease is held. */
  async #hold(ip: string, leading: AbortSignal): Promise<void> {
    const { host, log, clock, nodeAddresses, metrics } = this.#options;
    let link: Link | undefined;
    while (!leading.aborted && link === undefined) {
      try {
        link = linkFor(ip, await readLinks(host.run), nodeAddresses());
        if (link === undefined) throw new Error("no interface has the Node's address");
        await prepareLink(host, ip, link);
        this.#held.set(ip, link.name);
        await this.#writeRules(); // rules first, so that programs that listen on all addresses are never reachable on this one
        await bindAddresses(host.run, new Map([[ip, link.name]]), lifetimeSeconds);
        this.#failures.delete(ip);
      } catch (err) {
        link = undefined;
        this.#failed(ip, err);
        await clock.sleep(lease.retryPeriodMs, leading).catch(() => {});
      }
    }
    metrics.announced.set(this.#held.size);
    if (link !== undefined) {
      log.info("announcing an address", { address: ip, link: link.name });
      for (let i = 0; i < announcements && !leading.aborted; i++) {
        await announce(host, ip, link).catch((err: unknown) => this.#failed(ip, err));
        await clock.sleep(1_000, leading).catch(() => {});
      }
      if (!leading.aborted)
        await new Promise<void>((resolve) => leading.addEventListener("abort", () => resolve(), { once: true }));
    }
    const held = this.#held.get(ip);
    this.#held.delete(ip);
    metrics.announced.set(this.#held.size);
    if (held === undefined) return;
    await unbindAddress(host.run, ip, held).catch((err: unknown) => this.#failed(ip, err));
    await this.#writeRules().catch((err: unknown) => this.#failed(ip, err));
    log.info("no longer announcing an address", { address: ip });
  }

  async #refresh(): Promise<void> {
    let failure: { readonly cause: unknown } | undefined;
    const failed = (err: unknown): void => {
      failure ??= { cause: err };
    };
    // Rules first, as in `#hold`: while they cannot be written, only addresses that have theirs are kept.
    await this.#writeRules().catch(failed);
    const guarded = new Set(this.#rulesOf?.split(","));
    const kept = new Map([...this.#held].filter(([ip]) => guarded.has(ip)));
    await bindAddresses(this.#options.host.run, kept, lifetimeSeconds).catch(failed);
    for (const ip of this.#held.keys()) {
      if (failure === undefined) this.#failures.delete(ip);
      else this.#failed(ip, failure.cause);
    }
  }

  #failed(ip: string, err: unknown): void {
    const { log, metrics } = this.#options;
    metrics.failures.inc();
    this.#failures.set(ip, causesOf(err));
    log.error("cannot announce an address; trying again", err, { address: ip });
  }

  /** One write at a time, each of what is held then. */
  #writeRules(): Promise<void> {
    const writing = this.#writing.then(() => this.#writeRulesNow());
    this.#writing = writing.catch(() => {});
    return writing;
  }

  async #writeRulesNow(): Promise<void> {
    const { host, chainPrefix } = this.#options;
    const held = [...this.#held.keys()].sort();
    if (held.join() === this.#rulesOf) return;
    for (const family of ["IPv4", "IPv6"] as const) {
      const own = held.filter((ip) => isIPv4(ip) === (family === "IPv4"));
      const before = this.#rulesOf?.split(",").filter((ip) => ip !== "" && isIPv4(ip) === (family === "IPv4"));
      if (own.join() === before?.join()) continue;
      const iptables = newIptables(family, host.run);
      if (before === undefined && own.length === 0 && !(await hasRules(chainPrefix, family, host.run))) continue;
      const { text, jumps } = addressRules(own, chainPrefix);
      await iptables.restore(text);
      const missing = await iptables.missing(jumps);
      if (missing.length > 0) await iptables.restore(addingJumps(missing));
    }
    this.#rulesOf = held.join();
  }
}
