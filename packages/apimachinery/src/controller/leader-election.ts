import { isDeepStrictEqual } from "node:util";
import type { Client } from "../client/client.ts";
import type { Reconnection } from "../informers/reconnection.ts";
import { isConflict, isNotFound } from "../objects/errors/predicates.ts";
import { StatusError } from "../objects/errors/status-error.ts";
import { formatMicroTime } from "../objects/meta/time.ts";
import type { Clock } from "../process/clock/clock.ts";
import type { Logger } from "../process/logging/logger.ts";
import type { EventRecorder } from "./event-recorder.ts";
import type { LeaderStatus } from "./leader-status.ts";
import type { LeaderRecord, ResourceLock } from "./resource-lock.ts";

/** Settings of `--leader-elect` and related flags. */
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
  /** Unique name of the candidate: `<host name>_<uuid>`. */
  readonly identity: string;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  /** Called once, when this process becomes the leader. The signal is aborted when it loses leadership. */
  readonly onStarted: (signal: AbortSignal) => void;
  /** Called once after `onStarted`, when the lease is lost or `signal` is aborted. */
  readonly onStopped?: () => void;
  /** Called for each new leader, including this process. */
  readonly onNewLeader?: (identity: string) => void;
  /** Releases the lease at the end instead of letting it expire. */
  readonly releaseOnCancel?: boolean;
  /** Waits of a candidate while the server cannot be reached; default: as between other attempts. */
  readonly reconnection?: Reconnection | undefined;
  /** Receives state changes, for metrics and health checks. */
  readonly status?: LeaderStatus;
  /** Records events about the lock. */
  readonly recorder?: EventRecorder;
  readonly log: Logger;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly random?: () => number;
}

/**
 * Acquires the lease and renews it. Resolves when leadership has ended: the lease could not be renewed for `renewDeadlineMs`,
 * another candidate took it, or `signal` was aborted. Clocks of other candidates are not trusted: a lease is expired when this
 * process has seen it unchanged for a lease duration. A leader renews with one request, as client-go does from 0.30 on: it writes
 * what it wrote last with another time, and reads the lease only when that conflicts.
 * @throws Error for inconsistent durations
 * Source: k8s.io/client-go tools/leaderelection/leaderelection.go
 */
export async function runLeaderElection(options: LeaderElectionOptions): Promise<void> {
  const invalid = checkDurations(options);
  if (invalid !== undefined) throw new Error(invalid);
  const candidate = new Candidate(options);
  const { clock, signal, log, lock, status, retryPeriodMs, reconnection, random = Math.random } = options;

  log.info(`attempting to acquire leader lease ${lock.describe()}...`);
  while (!signal.aborted && !(await candidate.tryAcquireOrRenew(signal))) {
    const waiting =
      reconnection !== undefined && candidate.isServerAway
        ? reconnection.wait(signal)
        : clock.sleep(retryPeriodMs * (1 + jitterFactor * random()), signal);
    await waiting.catch(() => {});
  }
  if (signal.aborted) return;
  report(options, "became leader");
  log.info(`successfully acquired lease ${lock.describe()}`);

  const leading = new AbortController();
  try {
    status?.leads(true);
    options.onStarted(leading.signal);
    await renew(options, candidate, leading);
    // Work has to stop before another candidate can acquire the lease.
    leading.abort(new Error("no longer the leader"));
    if (options.releaseOnCancel === true) await candidate.release();
  } finally {
    leading.abort(new Error("no longer the leader"));
    report(options, "stopped leading");
    status?.leads(false);
    options.onStopped?.();
  }
}

/** Source: resourcelock/leaselock.go RecordEvent */
function report({ lock, identity, recorder }: LeaderElectionOptions, what: string): void {
  for (const object of lock.objects()) recorder?.event(object, "Normal", "LeaderElection", `${identity} ${what}`);
}

/** @returns an error text; undefined for valid durations. Source: leaderelection.NewLeaderElector */
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

/** Renews until the lease is lost (`leading` is aborted then) or the signal is aborted. */
async function renew(options: LeaderElectionOptions, candidate: Candidate, leading: AbortController): Promise<void> {
  const { clock, signal, log, lock, retryPeriodMs, renewDeadlineMs } = options;
  const either = AbortSignal.any([signal, leading.signal]);
  while (!signal.aborted) {
    // Armed after each renewal: after a long suspension of the process this timer stops its work before anything else runs.
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

class Candidate {
  readonly #options: LeaderElectionOptions;
  /** The last record that was read or written. */
  #observed: LeaderRecord | undefined;
  #observedAt = Number.NEGATIVE_INFINITY;
  #reported = "";
  #isServerAway = false;

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
  }

  /** True when the last attempt got no response. */
  get isServerAway(): boolean {
    return this.#isServerAway;
  }

  async tryAcquireOrRenew(signal: AbortSignal): Promise<boolean> {
    const { lock, log, reconnection } = this.#options;
    const isKnown = reconnection !== undefined && this.#isServerAway;
    this.#isServerAway = false;
    try {
      return (await this.#renewOwn(signal)) || (await this.#acquireOrRenew(signal));
    } catch (err) {
      this.#isServerAway = !(err instanceof StatusError);
      if (!signal.aborted && !(isKnown && this.#isServerAway))
        log.error(`error retrieving or updating resource lock ${lock.describe()}`, err);
      return false;
    }
  }

  /** True when the last observed record names another holder. */
  isAnothers(): boolean {
    const holder = this.#observed?.holderIdentity ?? "";
    return holder !== "" && holder !== this.#options.identity;
  }

  async release(): Promise<void> {
    const { client, lock, identity, clock, log, renewDeadlineMs } = this.#options;
    if (this.#observed?.holderIdentity !== identity) return;
    const now = formatMicroTime(clock.now());
    const empty = { ...this.#observed, holderIdentity: "", leaseDurationSeconds: 1, renewTime: now, acquireTime: now };
    try {
      await lock.update(client, empty, AbortSignal.timeout(renewDeadlineMs));
    } catch (err) {
      log.error("Failed to release lock", err);
    }
  }

  /** Writes the lease without reading it first. @returns false when it is not as this candidate wrote it */
  async #renewOwn(signal: AbortSignal): Promise<boolean> {
    const { identity, leaseDurationMs, clock } = this.#options;
    if (this.#observed?.holderIdentity !== identity) return false;
    try {
      const own = { leaseDurationSeconds: Math.floor(leaseDurationMs / 1000), renewTime: formatMicroTime(clock.now()) };
      return await this.#update({ ...this.#observed, ...own }, signal);
    } catch (err) {
      if (isConflict(err) || isNotFound(err)) return false;
      throw err;
    }
  }

  async #acquireOrRenew(signal: AbortSignal): Promise<boolean> {
    const { client, lock, identity, leaseDurationMs, clock, log } = this.#options;
    const now = formatMicroTime(clock.now());
    const wanted: LeaderRecord = {
      holderIdentity: identity,
      leaseDurationSeconds: Math.floor(leaseDurationMs / 1000),
      acquireTime: now,
      renewTime: now,
      leaderTransitions: 0,
    };
    let found: LeaderRecord;
    try {
      found = await lock.get(client, signal);
    } catch (err) {
      if (!isNotFound(err)) throw err;
      await lock.create(client, wanted, signal);
      this.#observe(wanted);
      return true;
    }
    this.#observe(found);
    if (this.isAnothers() && clock.monotonic() - this.#observedAt < leaseDurationMs) {
      log.v(4)?.info(`lock is held by ${found.holderIdentity} and has not yet expired`);
      return false;
    }
    const { acquireTime, leaderTransitions } = found;
    const kept =
      found.holderIdentity === identity ? { acquireTime, leaderTransitions } : { leaderTransitions: leaderTransitions + 1 };
    return this.#update({ ...wanted, ...kept }, signal);
  }

  async #update(record: LeaderRecord, signal: AbortSignal): Promise<true> {
    await this.#options.lock.update(this.#options.client, record, signal);
    this.#observe(record);
    return true;
  }

  #observe(record: LeaderRecord): void {
    const { clock, status, onNewLeader } = this.#options;
    if (!isDeepStrictEqual(record, this.#observed)) {
      this.#observed = record;
      this.#observedAt = clock.monotonic();
      status?.leaseSeen();
    }
    if (record.holderIdentity === this.#reported) return;
    this.#reported = record.holderIdentity;
    if (this.#reported !== "") onNewLeader?.(this.#reported);
  }
}
