import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Clock, Timer } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { describePod, fullName, isStaticPod, type NodePod } from "../pod/pod.ts";
import type { PodVerdict } from "../pod/pod-verdict.ts";
import type { PodRunner } from "./pod-runner.ts";

/** Kinds of work of a Pod's worker, as labels of metrics. */
export type PodWork = "create" | "update" | "sync" | "kill";

interface PodWorkersOptions {
  runner: PodRunner;
  clock: Clock;
  log: Logger;
  /** Resync interval without events. */
  syncFrequencyMs: number;
  random?: () => number;
  /** Called when a deleted Pod is cleaned up; `wantedAgain`: a Pod with the same UID is about to start. */
  onGone: (pod: NodePod, info: { runtimeOnly: boolean; wantedAgain: boolean }) => Promise<void>;
  onFailure?: (pod: NodePod, err: unknown) => void;
  /** Called after a sync without failures. */
  onSynced?: (pod: NodePod) => void;
  /** Called when the Pod begins to terminate. @param graceSeconds may be infinite */
  onTerminating?: (pod: NodePod, graceSeconds: number) => void;
  /** Called when a step failed; it is retried after `delayMs`. */
  onRetry?: (pod: NodePod, stage: "sync" | "termination" | "cleanup", err: unknown, delayMs: number) => void;
  /** Called before a Pod's first sync, `waitedMs` after the Pod was added. */
  onStarted?: (pod: NodePod, waitedMs: number) => void;
  /** Called after a sync (`create`, `update`, `sync`) or a termination (`kill`). */
  onWorked?: (pod: NodePod, work: PodWork, tookMs: number) => void;
}

/** One state machine per Pod: see newPodWorkers. */
export interface PodWorkers {
  /** A Pod was added or changed. */
  update(pod: NodePod): void;
  /** A Pod was removed from its source, whether or not it has a deletion timestamp. */
  remove(pod: NodePod): void;
  /** Triggers a sync of a Pod. */
  wake(uid: string): void;
  /** Terminates a Pod on behalf of the node; shortens a termination that is in progress. Resolves when no container runs. */
  evict(uid: string, verdict: PodVerdict, graceSeconds: number | undefined): Promise<void>;
  /** Terminates and removes containers without a wanted Pod. */
  removeOrphan(pod: NodePod): void;
  knows(uid: string): boolean;
  /** True when all containers have exited: the Pod holds no resources of the node any more. */
  hasEnded(uid: string): boolean;
  /** Pods that are terminating. */
  ending(): NodePod[];
  /** Resolves when no worker is busy. */
  idle(): Promise<void>;
  stop(): void;
}

type Stage = "syncing" | "terminating" | "cleaning" | "ended";

interface Worker {
  pod: NodePod;
  stage: Stage;
  /** A sync was started: the runtime may have sandboxes or containers of the Pod. */
  started: boolean;
  /** A Pod with the same UID that was added again during termination, e.g. a static Pod's file that was restored. */
  next: NodePod | undefined;
  /** Removed from its source or being deleted: clean up everything. */
  deleted: boolean;
  runtimeOnly: boolean;
  verdict: PodVerdict | undefined;
  graceSeconds: number | undefined;
  running: boolean;
  again: boolean;
  abort: AbortController;
  timer: Timer | undefined;
  stopped: (() => void)[];
  /** A termination is in progress. */
  killing: boolean;
  cleanRetryMs: number;
  /** When the Pod was added, in ms of the monotonic clock. */
  addedMs: number;
  /** Kind of the next sync. */
  work: PodWork;
}

const stageNames = { syncing: "sync", terminating: "termination", cleaning: "cleanup", ended: "cleanup" } as const;

const failureRetryMs = 10_000;
/** Doubles with each failure: e.g. a volume driver needed for unmounting may be unavailable for long. */
const cleanRetryMs = 500;
const maxCleanRetryMs = 16_000;

/**
 * One worker per Pod. A Pod is synced, then terminated, then cleaned up, never two of these at once. A request to terminate
 * aborts a running sync. Source: pkg/kubelet/pod_workers.go
 */
export function newPodWorkers(options: PodWorkersOptions): PodWorkers {
  return new QueuedPodWorkers(options);
}

class QueuedPodWorkers implements PodWorkers {
  readonly #options: PodWorkersOptions;
  readonly #random: () => number;
  readonly #workers = new Map<string, Worker>();
  #stopped = false;
  #busy = 0;
  readonly #idle: (() => void)[] = [];

  constructor(options: PodWorkersOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
  }

  update(pod: NodePod): void {
    const worker = this.#workers.get(pod.metadata.uid) ?? this.#newWorker(pod, false);
    const isDeleted = pod.metadata.deletionTimestamp != null;
    if (worker.deleted && !isDeleted) {
      worker.next = pod; // started after the current one has ended
      return;
    }
    const before = graceOf(worker);
    worker.pod = pod;
    if (worker.started) worker.work = "update";
    worker.runtimeOnly = false;
    if (isDeleted) {
      const now = pod.metadata.deletionGracePeriodSeconds;
      if (now !== undefined && worker.graceSeconds !== undefined) worker.graceSeconds = Math.min(worker.graceSeconds, now);
      this.#hurry(worker, before, now);
      beginTermination(worker, true);
    }
    this.#kick(worker);
  }

  remove(pod: NodePod): void {
    const worker = this.#workers.get(pod.metadata.uid);
    if (worker === undefined) return;
    worker.next = undefined;
    beginTermination(worker, true);
    this.#kick(worker);
  }

  wake(uid: string): void {
    const worker = this.#workers.get(uid);
    if (worker !== undefined && worker.stage === "syncing") this.#kick(worker);
  }

  evict(uid: string, verdict: PodVerdict, graceSeconds: number | undefined): Promise<void> {
    const worker = this.#workers.get(uid);
    if (worker === undefined || worker.stage === "cleaning" || worker.stage === "ended") return Promise.resolve();
    worker.verdict ??= verdict;
    this.#hurry(worker, graceOf(worker), graceSeconds);
    if (graceSeconds !== undefined) worker.graceSeconds = Math.min(worker.graceSeconds ?? graceSeconds, graceSeconds);
    beginTermination(worker, false);
    const ended = new Promise<void>((resolve) => worker.stopped.push(resolve));
    this.#kick(worker);
    return ended;
  }

  removeOrphan(pod: NodePod): void {
    if (this.#workers.has(pod.metadata.uid)) return;
    const worker = this.#newWorker(pod, true);
    worker.stage = "terminating";
    worker.deleted = true;
    worker.graceSeconds = orphanGraceSeconds;
    this.#kick(worker);
  }

  knows(uid: string): boolean {
    return this.#workers.has(uid);
  }

  hasEnded(uid: string): boolean {
    const stage = this.#workers.get(uid)?.stage;
    return stage === "cleaning" || stage === "ended";
  }

  ending(): NodePod[] {
    return [...this.#workers.values()].filter(({ stage }) => stage === "terminating").map(({ pod }) => pod);
  }

  idle(): Promise<void> {
    return this.#busy === 0 ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
  }

  stop(): void {
    this.#stopped = true;
    for (const worker of this.#workers.values()) worker.timer?.cancel();
  }

  #kick(worker: Worker): void {
    if (this.#stopped) return;
    worker.timer?.cancel();
    worker.timer = undefined;
    worker.again = true;
    if (!worker.running) void this.#run(worker);
  }

  async #run(worker: Worker): Promise<void> {
    const { log, clock } = this.#options;
    worker.running = true;
    this.#busy++;
    try {
      while (worker.again && !this.#stopped) {
        worker.again = false;
        const { stage } = worker;
        let delayMs: number | undefined;
        try {
          delayMs = await this.#step(worker);
        } catch (err) {
          // The sync was interrupted by a termination: its failure is not reported.
          const isInterrupted = stage === "syncing" && worker.abort.signal.aborted;
          if (!isInterrupted) {
            log.error("Error syncing pod, skipping", err, { pod: describePod(worker.pod), podUID: worker.pod.metadata.uid });
            this.#options.onFailure?.(worker.pod, err);
          }
          delayMs = worker.stage === "cleaning" ? worker.cleanRetryMs : this.#jitter(failureRetryMs);
          if (worker.stage === "cleaning") worker.cleanRetryMs = Math.min(worker.cleanRetryMs * 2, maxCleanRetryMs);
          // No jitter on top of the delay for a failed kill.
          if (worker.stage === "terminating") delayMs = Math.min(delayMs, failureRetryMs);
          if (!isInterrupted) this.#options.onRetry?.(worker.pod, stageNames[worker.stage], err, delayMs);
        }
        if (delayMs === 0) worker.again = true;
        else if (delayMs !== undefined && !worker.again) worker.timer = clock.after(delayMs, () => this.#kick(worker));
      }
    } finally {
      worker.running = false;
      this.#busy--;
      if (this.#busy === 0) for (const resolve of this.#idle.splice(0)) resolve();
    }
  }

  /** @returns the delay until the next step in ms: 0 for immediately, undefined to wait for an event */
  async #step(worker: Worker): Promise<number | undefined> {
    switch (worker.stage) {
      case "syncing":
        return this.#sync(worker);
      case "terminating":
        return this.#terminate(worker);
      case "cleaning":
        return this.#clean(worker);
      default:
        return undefined;
    }
  }

  async #sync(worker: Worker): Promise<number> {
    const { clock, runner, log, onStarted, onWorked, syncFrequencyMs } = this.#options;
    const started = clock.monotonic();
    worker.abort = new AbortController();
    if (!this.#isItsTurn(worker)) return this.#jitter(failureRetryMs);
    if (!worker.started) onStarted?.(worker.pod, started - worker.addedMs);
    worker.started = true;
    const { work } = worker;
    worker.work = "sync";
    const outcome = await runner.sync(worker.pod, worker.abort.signal);
    onWorked?.(worker.pod, work, clock.monotonic() - started);
    if (outcome.kind === "ended") {
      if (worker.stage === "syncing") worker.stage = "terminating";
      return 0;
    }
    if (outcome.kind === "failed") {
      log.v(2)?.info("pod is not synced", { pod: describePod(worker.pod), reason: outcome.error.message });
      const { retryMs = failureRetryMs, jitter = outcome.retryMs === undefined } = outcome;
      const delayMs = jitter ? this.#jitter(retryMs) : retryMs;
      this.#options.onRetry?.(worker.pod, "sync", outcome.error, delayMs);
      return delayMs;
    }
    this.#options.onSynced?.(worker.pod);
    return Math.max(1, Math.min(this.#jitter(syncFrequencyMs), outcome.againMs ?? Number.POSITIVE_INFINITY));
  }

  async #terminate(worker: Worker): Promise<number> {
    const { clock, runner, onWorked } = this.#options;
    const { runtimeOnly, graceSeconds, verdict } = worker;
    worker.killing = true;
    if (!runtimeOnly) this.#options.onTerminating?.(worker.pod, graceOf(worker));
    const started = clock.monotonic();
    try {
      await runner.terminate(worker.pod, { runtimeOnly, graceSecondsOverride: graceSeconds, verdict });
    } finally {
      worker.killing = false;
    }
    onWorked?.(worker.pod, "kill", clock.monotonic() - started);
    worker.stage = "cleaning";
    for (const resolve of worker.stopped.splice(0)) resolve();
    return 0;
  }

  async #clean(worker: Worker): Promise<number | undefined> {
    const { deleted, runtimeOnly } = worker;
    await this.#options.runner.clean(worker.pod, { deleted, runtimeOnly });
    if (deleted !== worker.deleted) return 0; // deleted while it was cleaned up: clean up the rest
    const name = fullName(worker.pod);
    if (deleted) {
      await this.#options.onGone(worker.pod, { runtimeOnly, wantedAgain: worker.next !== undefined });
      this.#workers.delete(worker.pod.metadata.uid);
    }
    worker.stage = "ended";
    // Read after the cleanup: the Pod may have been removed again meanwhile.
    if (worker.next !== undefined) this.update(worker.next);
    for (const other of this.#workers.values()) if (!other.started && fullName(other.pod) === name) this.#kick(other);
    return undefined;
  }

  /** Static Pods with the same name run one after the other: a changed Pod starts when the old one has ended. */
  #isItsTurn(worker: Worker): boolean {
    if (worker.started || !isStaticPod(worker.pod)) return true;
    const name = fullName(worker.pod);
    const rivals = [...this.#workers.values()].filter(
      ({ pod, stage }) => isStaticPod(pod) && fullName(pod) === name && stage !== "ended",
    );
    if (rivals.some(({ started }) => started)) return false;
    return rivals.find(({ stage }) => stage === "syncing") === worker;
  }

  #jitter(ms: number): number {
    return ms * (1 + this.#random() * 0.5);
  }

  #newWorker(pod: NodePod, runtimeOnly: boolean): Worker {
    const worker: Worker = {
      pod,
      stage: "syncing",
      started: false,
      next: undefined,
      deleted: false,
      runtimeOnly,
      verdict: undefined,
      graceSeconds: undefined,
      running: false,
      again: false,
      abort: new AbortController(),
      timer: undefined,
      stopped: [],
      killing: false,
      cleanRetryMs,
      addedMs: this.#options.clock.monotonic(),
      work: "create",
    };
    this.#workers.set(pod.metadata.uid, worker);
    return worker;
  }

  /** The running kill uses the old grace period: a second kill with the shorter one ends it sooner. */
  #hurry(worker: Worker, before: number, now: number | undefined): void {
    const { runner, log } = this.#options;
    if (!worker.killing || now === undefined || now >= before) return;
    const { pod, runtimeOnly, verdict } = worker;
    runner
      .terminate(pod, { runtimeOnly, graceSecondsOverride: now, verdict })
      .catch((err) => log.v(2)?.info("second kill of a pod failed", { pod: describePod(pod), reason: messageOf(err) }));
  }
}

function beginTermination(worker: Worker, deleted: boolean): void {
  worker.deleted ||= deleted;
  if (worker.stage === "syncing") {
    worker.stage = "terminating";
    worker.abort.abort();
  } else if (worker.stage === "ended" && deleted) {
    worker.stage = "cleaning";
  }
}

/** Grace period of Pods that only the runtime knows. Source: pkg/kubelet/kubelet_pods.go HandlePodCleanups */
const orphanGraceSeconds = 1;

/** The grace period of a Pod in seconds. */
function graceOf({ pod, graceSeconds }: Worker): number {
  return (
    graceSeconds ?? pod.metadata.deletionGracePeriodSeconds ?? pod.spec.terminationGracePeriodSeconds ?? Number.POSITIVE_INFINITY
  );
}
