import type { Client } from "@coxswain/apimachinery/client/client";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import type { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Lister } from "@coxswain/apimachinery/informers/lister";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Namespace, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { namespaces, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { type BindingProgress, bindPod, reserve } from "./binding-cycle.ts";
import { ClusterCache } from "./cache/cluster-cache.ts";
import { newPodInfo, type PodInfo } from "./cache/node-info.ts";
import { watchCluster } from "./cluster-events.ts";
import type { ProfileConfig, SchedulerConfig } from "./config/scheduler-config.ts";
import { diagnose } from "./diagnosis.ts";
import type { Extender } from "./extenders/extender.ts";
import { newHttpExtender } from "./extenders/http-extender.ts";
import type { CycleState } from "./framework/cycle-state.ts";
import { type CycleTimer, untimed } from "./framework/cycle-timer.ts";
import type { Nominator } from "./framework/nominator.ts";
import { newNominator } from "./framework/nominator.ts";
import { FitError, NoNodesError, type Status } from "./framework/status.ts";
import type { SchedulerMetrics } from "./metrics.ts";
import { plugins } from "./plugins/catalogue.ts";
import { PodStatuses } from "./pod-status.ts";
import { compareWith, newInterests, newProfile, type Profile } from "./profile.ts";
import { type QueuedPod, SchedulingQueue } from "./queue/scheduling-queue.ts";
import { type Decision, decide } from "./scheduling-cycle.ts";
import { SchedulingDecisions } from "./scheduling-decisions.ts";

export interface SchedulerOptions {
  readonly client: Client;
  readonly informers: InformerFactory;
  readonly profiles: readonly ProfileConfig[];
  readonly extenders?: readonly Extender[];
  readonly gates: Pick<FeatureGates, "enabled">;
  /** The event source is the scheduler name in the pod's spec. */
  readonly recorderOf: (schedulerName: string) => EventRecorder;
  readonly clock: Clock;
  /** Yields to the event loop between pods; undefined: never. */
  readonly turns?: Turns;
  readonly log: Logger;
  readonly metrics: SchedulerMetrics;
  /** Receives the reasons why pods wait; undefined: they are not recorded. */
  readonly decisions?: DecisionLog;
  readonly percentageOfNodesToScore?: number;
  readonly podInitialBackoffMs?: number;
  readonly podMaxBackoffMs?: number;
  readonly random?: () => number;
}

type ConfiguredOptions = Pick<
  SchedulerOptions,
  "profiles" | "extenders" | "percentageOfNodesToScore" | "podInitialBackoffMs" | "podMaxBackoffMs"
>;

/** The options that come from the configuration. @throws Error when an extender's TLS file cannot be read */
export const configuredOptions = (config: SchedulerConfig): ConfiguredOptions => ({
  profiles: config.profiles,
  extenders: config.extenders.map((extender) => newHttpExtender(extender)),
  percentageOfNodesToScore: config.percentageOfNodesToScore,
  podInitialBackoffMs: config.podInitialBackoffSeconds * 1000,
  podMaxBackoffMs: config.podMaxBackoffSeconds * 1000,
});

const defaultSchedulerName = "default-scheduler";

/**
 * Assigns a node to each pod whose schedulerName is one of the profiles: pop → decide → assume → bind. Scheduling cycles
 * run one at a time; binding cycles run concurrently.
 * @throws Error when a profile is invalid
 * Source: pkg/scheduler/scheduler.go
 */
export class Scheduler {
  readonly profiles: readonly Profile[];
  /** Pods that are not terminated, of all schedulers. */
  readonly pods: Lister<Pod>;
  readonly #options: SchedulerOptions;
  readonly #extenders: readonly Extender[];
  readonly #percentageOfNodesToScore: number;
  readonly #random: () => number;
  readonly #nominator: Nominator;
  readonly #recorders: Map<string, EventRecorder>;
  readonly #byName: Map<string, Profile>;
  readonly #cache: ClusterCache;
  readonly #queue: SchedulingQueue;
  readonly #namespaceLister: Lister<Namespace>;
  readonly #preferNominatedNode: boolean;
  readonly #decisions: SchedulingDecisions;
  readonly #statuses: PodStatuses;
  #startIndex = 0;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    const { clock, metrics, informers, gates, extenders = [], percentageOfNodesToScore = 0, random = Math.random } = options;
    this.#extenders = extenders;
    this.#percentageOfNodesToScore = percentageOfNodesToScore;
    this.#random = random;
    this.#nominator = newNominator((pod) => this.#stillWaiting(pod) !== undefined);
    this.#statuses = new PodStatuses(options.client, options.log);
    this.#recorders = new Map(options.profiles.map(({ schedulerName: name }) => [name, options.recorderOf(name)]));
    this.profiles = newProfiles({
      ...options,
      extenders: this.#extenders,
      nominator: this.#nominator,
      random: this.#random,
      recorders: this.#recorders,
      statuses: this.#statuses,
    });
    this.#byName = new Map(this.profiles.map((profile) => [profile.schedulerName, profile]));
    const [firstProfile] = this.profiles;
    if (firstProfile === undefined) throw new Error("at least one profile is required");
    this.#cache = new ClusterCache(clock);
    this.#queue = new SchedulingQueue({
      clock,
      log: options.log,
      compare: compareWith(firstProfile),
      mayHelp: newInterests(this.profiles),
      incoming: (part, event) => metrics.incoming(part, event),
      initialBackoffMs: options.podInitialBackoffMs,
      maxBackoffMs: options.podMaxBackoffMs,
    });
    this.#namespaceLister = informers.for<Namespace>(namespaces).lister;
    this.pods = watchCluster({
      informers,
      profiles: this.profiles,
      cache: this.#cache,
      queue: this.#queue,
      nominator: this.#nominator,
      isOurs: (pod) => this.#profileOf(pod) !== undefined,
      namespaceLabels: (name) => this.#namespaceLister.get(name)?.metadata.labels,
    });
    this.#decisions = new SchedulingDecisions(options.decisions);
    informers
      .for<Pod>(pods, { fieldSelector: "status.phase!=Succeeded,status.phase!=Failed" })
      .addHandler({ deleted: (pod) => this.#decisions.gone(pod) });
    this.#preferNominatedNode = gates.enabled("PreferNominatedNode");
  }

  /** Schedules until the signal is aborted. The caller starts the informers. */
  async run(signal: AbortSignal): Promise<void> {
    const { informers, metrics, turns } = this.#options;
    await informers.waitForSync(signal);
    metrics.readSizes(() => ({ queue: this.#queue.counts, cache: this.#cache.counts }));
    const close = (): void => this.#queue.close();
    signal.addEventListener("abort", close, { once: true });
    try {
      while (!signal.aborted) {
        const entry = await this.#queue.pop();
        if (entry === undefined) return;
        const { cycle } = this.#queue;
        await this.#schedule(entry).catch((err: unknown) => this.#retreat(entry, cycle, err));
        // With thousands of queued pods, responses and watch events would starve.
        await turns?.next();
      }
    } finally {
      signal.removeEventListener("abort", close);
    }
  }

  #report(pod: Pod, type: "Normal" | "Warning", reason: string, message: string, action: string): void {
    this.#recorders.get(pod.spec.schedulerName ?? defaultSchedulerName)?.event(pod, type, reason, message, { action });
  }

  #profileOf(pod: Pod): Profile | undefined {
    return this.#byName.get(pod.spec.schedulerName ?? defaultSchedulerName);
  }

  /** The current pod from the lister; undefined when it was deleted, recreated or bound. */
  #stillWaiting(known: Pod): Pod | undefined {
    const pod = this.pods.get(keyOf(known));
    if (pod === undefined || pod.metadata.uid !== known.metadata.uid || pod.spec.nodeName) return undefined;
    return pod;
  }

  /** Requeues the pod, records an event, begins to patch its status. @param nominatedNode `""` clears a nomination, undefined keeps it */
  async #refuse(
    attempt: Attempt,
    err: unknown,
    reason: string,
    nominatedNode: string | undefined,
    preemption?: string,
  ): Promise<void> {
    const { metrics, log, clock } = this.#options;
    // Only these parts, because the diagnosis keeps what it refers to in memory.
    const { entry, profile, info, begin } = attempt;
    const refused = err instanceof FitError || err instanceof NoNodesError;
    const message = messageOf(err);
    metrics.attempted(refused ? "unschedulable" : "error", profile.schedulerName, begin);
    if (refused) log.v(2)?.info("unable to schedule pod; no fit; waiting", { pod: keyOf(entry.pod), err: message });
    else log.error("cannot schedule pod; it keeps waiting", err, { pod: keyOf(entry.pod) });
    const current = this.#stillWaiting(entry.pod);
    if (current === undefined) return;
    entry.unschedulablePlugins = err instanceof FitError ? err.unschedulablePlugins : new Set();
    this.#queue.addUnschedulable(entry, attempt.cycle);
    // The pod may have changed since its cycle began, and be schedulable now.
    this.#queue.update(attempt.info.pod, current);
    this.#nominator.set(current, nominatedNode);
    this.#decisions.refused(current, err, {
      // Evaluating the filters again, for whoever reads the decision, would take seconds of a single turn for a large pod.
      diagnose: () => (info.isLarge ? { summary: message } : diagnose(profile, info, this.#cache.snapshot(), this.#nominator)),
      preemption: nominatedNode ? "preemption is in progress: it waits until pods of lower priority have ended" : preemption,
      nextTryMs: () => this.#nextTryMs(current),
    });
    this.#report(current, "Warning", "FailedScheduling", truncated(message), "Scheduling");
    this.#statuses.refuse(current, { reason, message, nominatedNode, nowMs: clock.now() });
    await this.#statuses.room();
  }

  /** Time of the next attempt, in ms since the epoch. */
  #nextTryMs(pod: Pod): number | undefined {
    const { clock } = this.#options;
    const atMs = this.#queue.nextTryMs(pod);
    return atMs && clock.now() + atMs - clock.monotonic();
  }

  async #bind(attempt: Attempt, decision: Decision): Promise<void> {
    const { metrics, log, clock } = this.#options;
    const { entry, profile, state, info, begin, timer } = attempt;
    const { pod } = info;
    const { nodeName } = decision;
    const progress: BindingProgress = { point: "", plugin: "" };
    this.#decisions.binding(pod, progress);
    const done = metrics.binding();
    try {
      const failures = await bindPod(profile, state, info, nodeName, this.#extenders, timer, progress);
      for (const failure of failures) log.error("a plugin failed after binding a pod", failure, { pod: keyOf(pod) });
      this.#cache.finishBinding(pod);
      metrics.attempted("scheduled", profile.schedulerName, begin);
      metrics.podScheduled(entry, clock.monotonic());
      this.#decisions.bound(pod, decision);
      log.v(2)?.info("successfully bound pod to node", { pod: keyOf(pod), node: nodeName });
      this.#report(pod, "Normal", "Scheduled", `Successfully assigned ${keyOf(pod)} to ${nodeName}`, "Binding");
    } catch (err) {
      this.#cache.forget(pod);
      // The assumed resources are free again. Called before `refuse`, so that this pod moves to the backoff queue, too.
      this.#queue.wakeUp("Pod/Delete");
      await this.#refuse(attempt, err, "SchedulerError", "");
    } finally {
      done();
    }
  }

  /** Runs the PostFilter plugins (preemption) after a FitError. The pod is reported as unschedulable in any case. */
  async #refuseOrPreempt(attempt: Attempt, err: unknown): Promise<void> {
    const { log } = this.#options;
    let nominated: string | undefined;
    let preemption: string | undefined;
    if (!(err instanceof FitError)) nominated = "";
    else {
      for (const plugin of attempt.profile.at.postFilter) {
        try {
          const { state, info, timer } = attempt;
          const snapshot = this.#cache.snapshot();
          const result = await timer.point("PostFilter", () => plugin.postFilter?.(state, info, err.statuses, snapshot));
          if (result?.nominatedNode !== undefined) nominated = result.nominatedNode;
          if (result?.status === undefined) break;
          preemption = preemptionText(attempt.info.pod, result.status);
        } catch (failure) {
          log.error("running a postFilter plugin failed", failure, { plugin: plugin.name, pod: keyOf(attempt.info.pod) });
          break;
        }
      }
    }
    await this.#refuse(attempt, err, "Unschedulable", nominated, preemption);
  }

  /** Requeues a pod after an unexpected error, e.g. from a malformed object, so that the scheduling loop continues. */
  #retreat(entry: QueuedPod, cycle: number, err: unknown): void {
    const { log, metrics, clock } = this.#options;
    log.error("scheduling a pod failed; it is tried again later", err, { pod: keyOf(entry.pod) });
    const current = this.#stillWaiting(entry.pod);
    if (current === undefined) return;
    entry.unschedulablePlugins = new Set();
    this.#queue.addUnschedulable(entry, cycle);
    metrics.attempted("error", current.spec.schedulerName ?? defaultSchedulerName, clock.monotonic());
    this.#report(current, "Warning", "FailedScheduling", truncated(messageOf(err)), "Scheduling");
  }

  /** One scheduling cycle. Without extenders there is no await between the snapshot and `assume`, unless it takes several turns. */
  async #schedule(entry: QueuedPod): Promise<void> {
    const { metrics, clock } = this.#options;
    const cycle = this.#queue.cycle;
    const written = this.#statuses.written(entry.pod);
    if (written !== undefined) await written;
    const current = this.#stillWaiting(entry.pod);
    if (current === undefined || this.#cache.isAssumed(current)) return;
    const profile = this.#profileOf(current);
    if (profile === undefined) return;
    if (current.metadata.deletionTimestamp) {
      const message = `skip schedule deleting pod: ${keyOf(current)}`;
      return this.#report(current, "Warning", "FailedScheduling", message, "Scheduling");
    }
    const timer = metrics.cycle(profile.schedulerName) ?? untimed;
    const begin = clock.monotonic();
    const attempt: Attempt = { entry, cycle, profile, state: new Map(), info: newPodInfo(current), begin, timer };
    const { state, info } = attempt;
    let decision: Decision;
    try {
      const choice = {
        percentageOfNodesToScore: this.#percentageOfNodesToScore,
        startIndex: this.#startIndex,
        random: this.#random,
        nominator: this.#nominator,
        extenders: this.#extenders,
        preferNominatedNode: this.#preferNominatedNode,
        timer,
        turns: this.#options.turns,
      };
      const outcome = decide(profile, state, info, this.#cache.snapshot(), choice);
      decision = outcome instanceof Promise ? await outcome : outcome;
      this.#startIndex = decision.nextStartIndex;
    } catch (err) {
      return this.#refuseOrPreempt(attempt, err);
    }
    metrics.decided(attempt.begin);
    const { nodeName } = decision;
    this.#cache.assume(info, nodeName);
    this.#nominator.delete(current);
    try {
      reserve(profile, state, info, nodeName, timer);
    } catch (err) {
      this.#cache.forget(current);
      return this.#refuse(attempt, err, "SchedulerError", "");
    }
    this.#bind(attempt, decision).catch((err: unknown) => this.#retreat(entry, cycle, err));
  }
}

function preemptionText(pod: Pod, { reasons }: Status): string {
  if (pod.spec.preemptionPolicy === "Never") return "its preemption policy forbids preemption";
  const [text] = reasons;
  return text === undefined ? "no preemption took place" : "preempting pods of lower priority would not help";
}

/** One scheduling attempt of one pod. */
interface Attempt {
  readonly entry: QueuedPod;
  readonly cycle: number;
  readonly profile: Profile;
  readonly state: CycleState;
  readonly info: PodInfo;
  readonly begin: number;
  readonly timer: CycleTimer;
}

type ProfileParts = SchedulerOptions & {
  readonly extenders: readonly Extender[];
  readonly nominator: ReturnType<typeof newNominator>;
  readonly random: () => number;
  readonly recorders: ReadonlyMap<string, EventRecorder>;
  readonly statuses: PodStatuses;
};

function newProfiles(parts: ProfileParts): Profile[] {
  return parts.profiles.map(({ schedulerName, plugins: sets, args }) => {
    let profile: Profile | undefined;
    const context = {
      ...parts,
      recorder: parts.recorders.get(schedulerName)!,
      profile(): Profile {
        if (profile === undefined) throw new Error("a plugin read its profile too early");
        return profile;
      },
    };
    try {
      profile = newProfile(schedulerName, sets, (name) =>
        Object.hasOwn(plugins, name) ? plugins[name]?.(context, args) : undefined,
      );
    } catch (err) {
      throw new Error(`creating profile for scheduler name ${schedulerName}: ${messageOf(err)}`, { cause: err });
    }
    return profile;
  });
}

/** Maximum length of an event's note. Source: scheduler.go truncateMessage */
const longestMessage = 1024;

function truncated(message: string): string {
  return message.length <= longestMessage ? message : `${message.slice(0, longestMessage - 4)} ...`;
}
