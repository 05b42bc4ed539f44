import type { Client } from "../client/client.ts";
import type { Clock } from "../clock/clock.ts";
import { isNotFound } from "../errors/predicates.ts";
import type { Logger } from "../logging/logger.ts";
import { formatMicroTime } from "../meta/time.ts";
import type { EventRecorder } from "./event-recorder.ts";
import type { LeaderStatus } from "./leader-status.ts";
import type { LeaderRecord, ResourceLock } from "./resource-lock.ts";

/** What a program with `--leader-elect` is told. */
export interface LeaderElectionConfig {
  readonly enabled: boolean;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  readonly resourceLock: string;
  readonly resourceName: string;
  readonly resourceNamespace: string;
}

export interface LeaderElectionOptions {
  readonly client: Client;
  readonly lock: ResourceLock;
  /** Unique among the candidates: `<host name>_<uuid>`. */
  readonly identity: string;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  /** Called once, as soon as this process leads; its signal is aborted when it no longer does. */
  readonly onStarted: (signal: AbortSignal) => void;
  /** Called once after `onStarted`, when the lease is lost or `signal` is aborted. */
  readonly onStopped?: () => void;
  /** Called for each leader that is seen, this one included. */
  readonly onNewLeader?: (identity: string) => void;
  /** Give the lease back at the end instead of letting it run out. */
  readonly releaseOnCancel?: boolean;
  /** Told of what comes of it. */
  readonly status?: LeaderStatus;
  /** Of events about the lock. */
  readonly recorder?: EventRecorder;
  readonly log: Logger;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly random?: () => number;
}

/**
 * Waits for the lease, holds it, renews it. Resolves when leadership is over: the lease could not be renewed for
 * `renewDeadlineMs`, another one took it, or `signal` was aborted. Others' clocks are not trusted: a lease has run out
 * when this process has seen it unchanged for a lease duration.
 * @throws Error for durations that cannot work
 * Source: k8s.io/client-go tools/leaderelection/leaderelection.go
 */
export async function runLeaderElection(options: LeaderElectionOptions): Promise<void> {
  const invalid = checkDurations(options);
  if (invalid !== undefined) throw new Error(invalid);
  const candidate = newCandidate(options);
  const { clock, signal, log, lock, status, retryPeriodMs, random = Math.random } = options;

  log.info(`attempting to acquire leader lease ${lock.describe()}...`);
  while (!signal.aborted && !(await candidate.tryAcquireOrRenew(signal))) {
    await clock.sleep(retryPeriodMs * (1 + jitterFactor * random()), signal).catch(() => {});
  }
  if (signal.aborted) return;
  tell(options, "became leader");
  log.info(`successfully acquired lease ${lock.describe()}`);

  const leading = new AbortController();
  try {
    status?.leads(true);
    options.onStarted(leading.signal);
    await renew(options, candidate, leading);
    // Work stops before somebody else may begin it.
    leading.abort(new Error("no longer the leader"));
    if (options.releaseOnCancel === true) await candidate.release();
  } finally {
    leading.abort(new Error("no longer the leader"));
    tell(options, "stopped leading");
    status?.leads(false);
    options.onStopped?.();
  }
}

/** Source: resourcelock/leaselock.go RecordEvent */
function tell({ lock, identity, recorder }: LeaderElectionOptions, what: string): void {
  for (const object of lock.objects()) recorder?.event(object, "Normal", "LeaderElection", `${identity} ${what}`);
}

/** @returns what is wrong, undefined when nothing is. Source: leaderelection.NewLeaderElector */
export function checkDurations(
  options: Pick<LeaderElectionOptions, "leaseDurationMs" | "renewDeadlineMs" | "retryPeriodMs">,
): string | undefined {
  const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = options;
  if (leaseDurationMs <= renewDeadlineMs) return "leaseDuration must be greater than renewDeadline";
  if (renewDeadlineMs <= jitterFactor * retryPeriodMs) return "renewDeadline must be greater than retryPeriod*JitterFactor";
  if (leaseDurationMs < 1) return "leaseDuration must be greater than zero";
  if (renewDeadlineMs < 1) return "renewDeadline must be greater than zero";
  return retryPeriodMs < 1 ? "retryPeriod must be greater than zero" : undefined;
}

const jitterFactor = 1.2;

/** Resolves when the lease is lost, which has aborted `leading`, or the signal is aborted. */
async function renew(options: LeaderElectionOptions, candidate: Candidate, leading: AbortController): Promise<void> {
  const { clock, signal, log, lock, retryPeriodMs, renewDeadlineMs } = options;
  const either = AbortSignal.any([signal, leading.signal]);
  while (!signal.aborted) {
    // Runs from the last renewal on: a process that was stopped for so long ends its work before anything else of it goes on.
    const timer = clock.after(retryPeriodMs + renewDeadlineMs, () => leading.abort(new Error("no longer the leader")));
    let renewed = false;
    while (!renewed && !either.aborted) {
      await clock.sleep(retryPeriodMs, either).catch(() => {});
      renewed = !either.aborted && (await candidate.tryAcquireOrRenew(either));
      if (candidate.isAnothers()) leading.abort(new Error("no longer the leader"));
    }
    timer.cancel();
    if (signal.aborted) return;
    if (leading.signal.aborted) {
      log.info(`failed to renew lease ${lock.describe()}: timed out waiting for the condition`);
      return;
    }
  }
}

interface Candidate {
  tryAcquireOrRenew(signal: AbortSignal): Promise<boolean>;
  /** Whether somebody else had the lease when it was last looked at. */
  isAnothers(): boolean;
  release(): Promise<void>;
}

function newCandidate(options: LeaderElectionOptions): Candidate {
  const { client, lock, identity, leaseDurationMs, clock, log, status, onNewLeader } = options;
  let observed: LeaderRecord | undefined;
  let observedText = "";
  let observedAt = Number.NEGATIVE_INFINITY;
  let reported = "";

  const observe = (record: LeaderRecord): void => {
    const text = JSON.stringify(record);
    if (text !== observedText) {
      observed = record;
      observedText = text;
      observedAt = clock.monotonic();
      status?.leaseSeen();
    }
    if (record.holderIdentity === reported) return;
    reported = record.holderIdentity;
    if (reported !== "") onNewLeader?.(reported);
  };
  const isAnothers = (): boolean =>
    observed !== undefined && observed.holderIdentity !== "" && observed.holderIdentity !== identity;
  const heldByOther = (): boolean => isAnothers() && clock.monotonic() - observedAt < leaseDurationMs;

  return {
    async tryAcquireOrRenew(signal) {
      const now = clock.now();
      const wanted: LeaderRecord = {
        holderIdentity: identity,
        leaseDurationSeconds: Math.floor(leaseDurationMs / 1000),
        acquireTime: formatMicroTime(now),
        renewTime: formatMicroTime(now),
        leaderTransitions: 0,
      };
      try {
        let found: LeaderRecord;
        try {
          found = await lock.get(client, signal);
        } catch (err) {
          if (!isNotFound(err)) throw err;
          await lock.create(client, wanted, signal);
          observe(wanted);
          return true;
        }
        observe(found);
        if (heldByOther()) {
          log.v(4)?.info(`lock is held by ${found.holderIdentity} and has not yet expired`);
          return false;
        }
        const renewing = found.holderIdentity === identity;
        const record: LeaderRecord = {
          ...wanted,
          acquireTime: renewing ? found.acquireTime : wanted.acquireTime,
          leaderTransitions: renewing ? found.leaderTransitions : found.leaderTransitions + 1,
        };
        await lock.update(client, record, signal);
        observe(record);
        return true;
      } catch (err) {
        if (!signal.aborted) log.error(`error retrieving or updating resource lock ${lock.describe()}`, err);
        return false;
      }
    },
    isAnothers,
    async release() {
      if (observed?.holderIdentity !== identity) return;
      const now = formatMicroTime(clock.now());
      const empty = { ...observed, holderIdentity: "", leaseDurationSeconds: 1, renewTime: now, acquireTime: now };
      try {
        await lock.update(client, empty, AbortSignal.timeout(options.renewDeadlineMs));
      } catch (err) {
        log.error("Failed to release lock", err);
      }
    },
  };
}
