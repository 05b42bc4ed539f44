import type { Clock, Timer } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { EtcdClient, WatchStream } from "./client.ts";
import { etcdErrorOf } from "./errors.ts";
import type { ProgressTrust } from "./progress-trust.ts";
import {
  decodeWatch,
  encodeWatchCreate,
  encodeWatchProgress,
  endOfPrefix,
  everyWatch,
  type WatchEventMessage,
  type WatchResponse,
} from "./wire.ts";

export interface EtcdWatchOptions {
  client: EtcdClient;
  /** Ends with `/`. */
  prefix: string;
  /** A single key instead of all that begin with `prefix`. */
  single?: boolean;
  /** Events after this revision. */
  after: number;
  prevKv: boolean;
  /** Events of whole revisions, ascending. When it returns a promise the next call waits for it; the promise must not reject. */
  onEvents(events: WatchEventMessage[], revision: number): void | Promise<void>;
  /** The requested revision is compacted; the watch has ended. */
  onCompacted(compactRevision: number): void;
  /** etcd was restored: a write that was seen did not happen there. The watch has ended. */
  onOtherHistory?(): void;
  /** The write at `after`, where it is known. */
  witness?: Witness | undefined;
  /** Progress of an idle watch. Called after all events up to the revision. */
  progress?: {
    trust: ProgressTrust;
    onProgress(revision: number): void;
    /** An event arrived at a revision that an earlier progress reply had passed. The watch has ended. */
    onUntrue(): void;
  };
  clock: Clock;
  log: Logger;
}

/** A write that etcd has to know for as long as its history is the same and not compacted. */
export interface Witness {
  readonly key: string;
  readonly revision: number;
  readonly value: Buffer;
}

/** A stream silent for this long gets a progress request; after the same time again without a reply it is reconnected. */
const silenceMs = 10_000;
const firstBackoffMs = 50;
const longestBackoffMs = 2_000;

/** Starts a watch that reconnects until `stop` is called or it ends by `onCompacted` or `onUntrue`. */
export function startEtcdWatch(options: EtcdWatchOptions): EtcdWatch {
  return new EtcdWatch(options);
}

/**
 * A watch on a prefix that never skips events: whole revisions, in order, across reconnects. It resumes after the mod revision of
 * the last event, never after a header revision, which can be ahead of events still to come (etcd #15220). For the same reason a
 * progress reply only shows that the stream is alive, unless all members run versions with reliable replies.
 */
export class EtcdWatch {
  readonly #options: EtcdWatchOptions;
  #revision: number;
  /** Mod revision of the last event; `revision` is ahead of it after a progress reply. */
  #seen: number;
  /** The last write seen. */
  #witness: Witness | undefined;
  #stopped = false;
  /** The member whose stream failed last. */
  #failed: number | undefined;
  #failures = 0;
  #stream: WatchStream | undefined;
  #pending: WatchEventMessage[] = [];
  /** Responses received while `onEvents` is pending. */
  #backlog: WatchResponse[] = [];
  #delivering = false;
  #heard = 0;
  #requested = false;
  #retry: Timer | undefined;
  readonly #watchdog: Timer;

  constructor(options: EtcdWatchOptions) {
    this.#options = options;
    const { clock } = options;
    this.#revision = options.after;
    this.#seen = options.after;
    this.#witness = options.witness;
    this.#watchdog = clock.every(silenceMs, () => {
      if (this.#stream === undefined || clock.monotonic() - this.#heard < silenceMs) return;
      if (this.#requested) {
        this.#lost(this.#stream, new Error(`silent for ${Math.round(clock.monotonic() - this.#heard)} ms`));
        return;
      }
      this.#requested = true;
      this.#stream.write(encodeWatchProgress());
    });
    this.#open();
  }

  /** Every event up to this revision was delivered. */
  get revision(): number {
    return this.#revision;
  }

  /**
   * Requests a progress notification; `onProgress` is called unless the watch is behind.
   * @returns false, without a request, when the reply could not be trusted
   */
  requestProgress(): boolean {
    if (this.#stream === undefined || !this.#options.progress?.trust.trusted) return false;
    this.#stream.write(encodeWatchProgress());
    return true;
  }

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#watchdog.cancel();
    this.#retry?.cancel();
    const last = this.#stream;
    this.#stream = undefined;
    last?.cancel();
  }

  #open(): void {
    const { clock, client, log } = this.#options;
    if (this.#stopped) return;
    this.#pending = [];
    this.#backlog = [];
    this.#requested = false;
    this.#heard = clock.monotonic();
    this.#options.progress?.trust.doubt();
    const mine: WatchStream = client.openWatch(this.#failed, {
      message: (bytes) => {
        if (mine !== this.#stream) return;
        this.#heard = clock.monotonic();
        this.#requested = false;
        try {
          const response = decodeWatch(bytes);
          if (this.#delivering) this.#backlog.push(response);
          else this.#receive(response);
        } catch (err) {
          log.error("cannot process a response of the etcd watch", err, { prefix: this.#options.prefix });
          this.#lost(mine, err);
        }
      },
      ended: (err) => this.#lost(mine, err),
    });
    this.#stream = mine;
    mine.write(
      encodeWatchCreate({
        key: this.#options.prefix,
        ...(!this.#options.single && { end: endOfPrefix(this.#options.prefix) }),
        // Not `revision` + 1: etcd accepts a start at its compaction revision itself, where versions before 3.4.34
        // and 3.5.16 have lost a deletion (etcd #18089), and where the previous state is gone in any case. Events
        // already seen are filtered out.
        startRevision: Math.max(this.#revision, 1),
        prevKv: this.#options.prevKv,
      }),
    );
  }

  #receive(response: WatchResponse): void {
    if (response.canceled) {
      if (response.compactRevision > 0) {
        this.stop();
        this.#options.onCompacted(response.compactRevision);
      } else this.#lost(this.#stream, new Error(`canceled by etcd: ${response.cancelReason}`));
      return;
    }
    // Queried after the stream is established: only then is the member known, and it cannot restart
    // in an older version unnoticed.
    if (response.created) {
      this.#options.progress?.trust.check();
      if (this.#failed !== undefined) void this.#checkHistory();
    }
    if (response.watchId === everyWatch && this.#pending.length === 0 && this.#options.progress?.trust.trusted) {
      this.#revision = Math.max(this.#revision, response.revision);
      this.#options.progress.onProgress(this.#revision);
    }
    if (response.events.length === 0) return;
    this.#failures = 0;
    const events = this.#pending.length === 0 ? response.events : this.#pending.concat(response.events);
    this.#pending = response.fragment ? events : [];
    if (!response.fragment) this.#deliver(events);
  }

  /** @param events of whole revisions */
  #deliver(events: WatchEventMessage[]): void {
    const last = events[events.length - 1]!.kv.modRevision;
    // etcd may repeat events from before a reconnect.
    const fresh = events[0]!.kv.modRevision > this.#seen ? events : events.filter((e) => e.kv.modRevision > this.#seen);
    const first = fresh[0]?.kv.modRevision;
    if (first === undefined) return;
    if (first <= this.#revision) {
      // Readers that relied on the reply were served too early, and clients may have resumed from it.
      this.#options.log.error("etcd reported progress beyond an event that it sent later", undefined, {
        progress: this.#revision,
        event: first,
      });
      this.stop();
      this.#options.progress?.trust.refute();
      this.#options.progress?.onUntrue();
      return;
    }
    this.#seen = last;
    this.#revision = last;
    const put = fresh.findLast(({ type }) => type === "put");
    if (put !== undefined) this.#witness = { key: put.kv.key, revision: put.kv.modRevision, value: put.kv.value };
    const busy = this.#options.onEvents(fresh, last);
    if (busy === undefined) return;
    this.#delivering = true;
    void busy.then(() => this.#goOn());
  }

  /**
   * A restored etcd reuses revisions: a watch that missed the restore cannot see from events alone that what it delivered before
   * belongs to another history.
   */
  async #checkHistory(): Promise<void> {
    const { client } = this.#options;
    if (this.#witness === undefined || this.#options.onOtherHistory === undefined) return;
    const { key, revision: at, value } = this.#witness;
    let isKnown: boolean;
    try {
      const { kvs } = await client.range({ key, revision: at });
      isKnown = kvs[0]?.modRevision === at && kvs[0].value.equals(value);
    } catch (err) {
      // Compacted, or not answered: unknown.
      isKnown = etcdErrorOf(err).reason !== "future-revision";
    }
    if (isKnown || this.#stopped) return;
    this.stop();
    this.#options.onOtherHistory();
  }

  #goOn(): void {
    this.#delivering = false;
    while (!this.#delivering && !this.#stopped && this.#backlog.length > 0) this.#receive(this.#backlog.shift()!);
  }

  #lost(which: WatchStream | undefined, err: unknown): void {
    // Without a stream it is lost already, and this is a second report of the same failure.
    if (this.#stopped || this.#stream === undefined || which !== this.#stream) return;
    this.#stream = undefined;
    this.#failed = which.server;
    which.cancel();
    this.#again(err);
  }

  #again(err: unknown): void {
    const { log, clock } = this.#options;
    const delayMs = Math.min(firstBackoffMs * 2 ** Math.min(this.#failures, 10), longestBackoffMs);
    this.#failures++;
    // Single failures are normal (etcd restarts, connections age); only a persistent one is logged.
    if (this.#failures === 3) log.warn("etcd watch is interrupted", { prefix: this.#options.prefix, error: String(err) });
    this.#retry = clock.after(delayMs, () => this.#open());
  }
}
