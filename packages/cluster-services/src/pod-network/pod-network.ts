import { newBackoff } from "@coxswain/apimachinery/informers/backoff";
import { causesOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { runSteps, type Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { addingJumps, newIptables } from "../services/iptables.ts";
import { cniConfig, missingPlugins, otherNetwork, rangesIn, writeConfig } from "./cni-config.ts";
import type { PodNetworkHost } from "./host.ts";
import { commandsFor, readKernelState, runCommands } from "./kernel-state.ts";
import type { PodNetworkMetrics } from "./metrics.ts";
import { vxlanLink } from "./names.ts";
import type { IpFamily } from "./networks.ts";
import { isProblem, type Plan, type Problem, planNetwork } from "./plan.ts";
import { podRules } from "./rules.ts";
import type { PodNetworkSettings } from "./settings.ts";
import { isOurRoute, withdraw } from "./withdraw.ts";

interface PodNetworkOptions {
  readonly nodeName: string;
  readonly settings: PodNetworkSettings;
  readonly host: PodNetworkHost;
  /** All Nodes, as the caches show them now. */
  readonly nodes: () => readonly Node[];
  /** Reports problems of this Node to users. */
  readonly notify: (type: "Normal" | "Warning", reason: string, message: string) => void;
  readonly metrics: PodNetworkMetrics;
  readonly log: Logger;
  readonly clock: Clock;
  /** Thousands of Nodes are looked at in; absent: at once. */
  readonly turns?: Turns | undefined;
}

const retryBackoff = { initialMs: 500, maxMs: 30_000, resetAfterMs: 60_000, factor: 2, jitter: 0.2 };
/** Gathers the changes of Nodes that come together. */
const gatherMs = 50;

/**
 * Keeps the CNI configuration and the kernel's routes and rules in line with the Nodes. It also takes over what another process
 * has created.
 */
export class PodNetwork {
  readonly #options: PodNetworkOptions;
  /** By problem or state, so that each is reported once until it changes. */
  #reported = new Set<string>();
  #problems: readonly Problem[] = [{ reason: "Starting", message: "the network has not been set up yet" }];
  #rules = new Map<IpFamily, string>();
  #leftTo: string | undefined;
  #families: IpFamily[] | undefined;
  #wake = Promise.withResolvers<void>();

  constructor(options: PodNetworkOptions) {
    this.#options = options;
  }

  /** Nodes or CNI configurations have changed. */
  changed(): void {
    this.#wake.resolve();
  }

  /** @throws Error with everything that keeps pods from reaching each other */
  check(): void {
    if (this.#problems.length > 0) throw new Error(this.#problems.map(({ message }) => message).join("; "));
  }

  /** Until `signal` is aborted. Failures are retried; does not reject. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, settings, metrics } = this.#options;
    const backoff = newBackoff({ ...retryBackoff, clock });
    while (!signal.aborted) {
      this.#wake = Promise.withResolvers();
      let waitMs = settings.checkPeriodMs;
      const begun = clock.monotonic();
      try {
        await this.sync();
        metrics.syncSeconds.observe((clock.monotonic() - begun) / 1000);
      } catch (err) {
        waitMs = backoff.next();
        metrics.failures.inc();
        this.#rules.clear(); // what the kernel has is not known
        this.#report([{ reason: "SyncFailed", message: causesOf(err) }]);
        log.error("cannot set up the pod network; trying again", err, { afterMs: Math.round(waitMs) });
      }
      await this.#sleep(waitMs, signal);
      await clock.sleep(gatherMs, signal).catch(() => {});
    }
  }

  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    const timer = this.#options.clock.after(ms, () => this.#wake.resolve());
    const stop = (): void => this.#wake.resolve();
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop(); // during the last sync
    await this.#wake.promise;
    signal.removeEventListener("abort", stop);
    timer.cancel();
  }

  /** Compares everything once, and changes what differs. @throws Error when the kernel or the file system refuses */
  async sync(): Promise<void> {
    const { settings, host, nodes, nodeName, metrics } = this.#options;
    const other = await otherNetwork(settings);
    if (other !== undefined) return this.#leaveTo(other);
    this.#leftTo = undefined;
    this.#families ??= (await host.hasIpv6()) ? [4, 6] : [4];
    const families = this.#families;
    const state = await readKernelState(host.run, settings.bridge);
    const planning = planNetwork({ nodeName, nodes: nodes(), links: state.links, families, settings });
    const plan = await runSteps(this.#options.turns, planning);
    if (isProblem(plan)) return this.#report([plan]); // the kernel keeps what it has: the Node may be back soon
    for (const { family } of plan.own) await host.forward(family);
    await runCommands(
      host.run,
      commandsFor(plan, state, settings, (route) => isOurRoute(route, settings)),
    );
    for (const family of new Set(plan.own.map((network) => network.family))) await this.#writeRules(plan, family);
    const missing = missingPlugins(settings.pluginFolders);
    // Last, because the file makes the runtime report that its network is ready, and pods are started.
    if (missing === undefined) await this.#writeConfig(plan);
    metrics.active.set(1);
    const inVxlan = plan.routes.filter(({ link }) => link === vxlanLink(settings.bridge)).length;
    metrics.routes.labels("vxlan").set(inVxlan);
    metrics.routes.labels("host-gateway").set(plan.routes.length - inVxlan);
    this.#report(missing === undefined ? plan.problems : [missing, ...plan.problems]);
  }

  async #writeConfig({ own, mtu }: Plan): Promise<void> {
    const { settings, log, notify } = this.#options;
    const before = rangesIn(settings.configPath);
    const now = own.map(({ text }) => text);
    if (!(await writeConfig(settings.configPath, cniConfig(own, mtu, settings)))) return;
    log.info("wrote the CNI configuration", { file: settings.configPath, ranges: now.join(), mtu });
    if (before === undefined || before.join() === now.join()) return;
    const message = `the pod range is ${now.join(", ")}, it was ${before.join(", ")}; pods with addresses of the old one reach no other node until they are made anew`;
    notify("Warning", "PodCIDRChanged", message);
  }

  async #writeRules(plan: Plan, family: IpFamily): Promise<void> {
    const { settings, host, log } = this.#options;
    const iptables = newIptables(family === 4 ? "IPv4" : "IPv6", host.run);
    const { text, jumps } = podRules(plan, settings, family);
    const missing = await iptables.missing(jumps);
    if (this.#rules.get(family) === text && missing.length === 0) return;
    if (this.#rules.has(family) && missing.length > 0)
      log.warn("rules are missing in the kernel, writing all of them", { missing: missing.map(({ from }) => from).join() });
    await iptables.restore(text);
    if (missing.length > 0) await iptables.restore(addingJumps(missing));
    this.#rules.set(family, text);
  }

  /** Leaves the node to another network, whose configuration was found. */
  async #leaveTo(other: string): Promise<void> {
    const { settings, host, metrics, notify, log } = this.#options;
    if (this.#leftTo !== other) {
      await withdraw(settings, host.run);
      this.#rules.clear();
      log.info("another network's configuration was found; this pod network is turned off", { configuration: other });
      notify("Normal", "OtherPodNetwork", `the pod network is left to ${other}`);
    }
    this.#leftTo = other;
    metrics.active.set(0);
    for (const type of ["vxlan", "host-gateway"]) metrics.routes.labels(type).set(0);
    this.#report([]);
  }

  #report(problems: readonly Problem[]): void {
    const { metrics, notify } = this.#options;
    this.#problems = problems;
    metrics.problems.set(problems.length);
    const now = new Set(problems.map(({ message }) => message));
    for (const { reason, message } of problems) {
      // A Node that does not exist has no events, and a new one no pod range.
      if (!this.#reported.has(message) && reason !== "NodeNotFound") notify("Warning", reason, message);
    }
    this.#reported = now;
  }
}
