import type { Clock, Timer } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
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

/**
 * A watch on a prefix that never skips events: whole revisions, in order, across reconnects. It resumes after the mod revision of
 * the last event, never after a header revision, which can be ahead of events still to come (etcd #15220). For the same reason a
 * progress reply only shows that the stream is alive, unless all members run versions with reliable replies.
 */
export interface EtcdWatch {
  /** Every event up to this revision was delivered. */
  readonly revision: number;
  /**
   * Requests a progress notification; `onProgress` is called unless the watch is behind.
   * @returns false, without a request, when the reply could not be trusted
   */
  requestProgress(): boolean;
  stop(): void;
}

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
  const { client, clock, log } = options;
  let revision = options.after;
  /** Mod revision of the last event; `revision` is ahead of it after a progress reply. */
  let seen = options.after;
  /** The last write seen. */
  let { witness } = options;
  let stopped = false;
  let turn = 0;
  let failures = 0;
  let stream: WatchStream | undefined;
  let pending: WatchEventMessage[] = [];
  /** Responses received while `onEvents` is pending. */
  let backlog: WatchResponse[] = [];
  let delivering = false;
  let heard = 0;
  let asked = false;
  let retry: Timer | undefined;

  function open(): void {
    if (stopped) return;
    pending = [];
    backlog = [];
    asked = false;
    heard = clock.monotonic();
    options.progress?.trust.doubt();
    const mine: WatchStream = client.openWatch(turn, {
      message(bytes) {
        if (mine !== stream) return;
        heard = clock.monotonic();
        asked = false;
        try {
          const response = decodeWatch(bytes);
          if (delivering) backlog.push(response);
          else receive(response);
        } catch (err) {
          log.error("cannot take an answer of the etcd watch", err, { prefix: options.prefix });
          lost(mine, err);
        }
      },
      ended: (err) => lost(mine, err),
    });
    stream = mine;
    mine.write(
      encodeWatchCreate({
        key: options.prefix,
        ...(!options.single && { end: endOfPrefix(options.prefix) }),
        // Not `revision` + 1: etcd accepts a start at its compaction revision itself, where versions before 3.4.34
        // and 3.5.16 have lost a deletion (etcd #18089), and where the previous state is gone in any case. Events
        // already seen are filtered out.
        startRevision: Math.max(revision, 1),
        prevKv: options.prevKv,
      }),
    );
  }

  function receive(response: WatchResponse): void {
    if (response.canceled) {
      if (response.compactRevision > 0) {
        stop();
        options.onCompacted(response.compactRevision);
      } else lost(stream, new Error(`canceled by etcd: ${response.cancelReason}`));
      return;
    }
    // Queried after the stream is established: only then is the member known, and it cannot restart
    // in an older version unnoticed.
    if (response.created) {
      options.progress?.trust.ask();
      if (turn > 0) void checkHistory();
    }
    if (response.watchId === everyWatch && pending.length === 0 && options.progress?.trust.trusted) {
      revision = Math.max(revision, response.revision);
      options.progress.onProgress(revision);
    }
    if (response.events.length === 0) return;
    failures = 0;
    const events = pending.length === 0 ? response.events : pending.concat(response.events);
    if (response.fragment) {
      pending = events;
      return;
    }
    pending = [];
    const last = (events[events.length - 1] as WatchEventMessage).kv.modRevision;
    // etcd may repeat events from before a reconnect.
    const fresh = (events[0] as WatchEventMessage).kv.modRevision > seen ? events : events.filter((e) => e.kv.modRevision > seen);
    const first = fresh[0]?.kv.modRevision;
    if (first === undefined) return;
    if (first <= revision) {
      // Readers that relied on the reply were served too early, and clients may have resumed from it.
      log.error("etcd reported progress beyond an event that it sent later", undefined, { progress: revision, event: first });
      stop();
      options.progress?.trust.refute();
      options.progress?.onUntrue();
      return;
    }
    seen = last;
    revision = last;
    const put = fresh.findLast(({ type }) => type === "put");
    if (put !== undefined) witness = { key: put.kv.key, revision: put.kv.modRevision, value: put.kv.value };
    const busy = options.onEvents(fresh, last);
    if (busy === undefined) return;
    delivering = true;
    void busy.then(goOn);
  }

  /**
   * A restored etcd gives out revisions again: from its events alone a watch that missed the restore cannot tell that what it has
   * delivered before belongs to another history.
   */
  async function checkHistory(): Promise<void> {
    if (witness === undefined || options.onOtherHistory === undefined) return;
    const { key, revision: at, value } = witness;
    let isKnown: boolean;
    try {
      const { kvs } = await client.range({ key, revision: at });
      isKnown = kvs[0]?.modRevision === at && kvs[0].value.equals(value);
    } catch (err) {
      // Compacted, or not answered: unknown.
      isKnown = etcdErrorOf(err).reason !== "future-revision";
    }
    if (isKnown || stopped) return;
    stop();
    options.onOtherHistory();
  }

  function goOn(): void {
    delivering = false;
    while (!delivering && !stopped && backlog.length > 0) receive(backlog.shift() as WatchResponse);
  }

  function lost(which: typeof stream, err: unknown): void {
    // Without a stream it is lost already, and this is a second report of the same failure.
    if (stopped || stream === undefined || which !== stream) return;
    stream = undefined;
    which?.cancel();
    again(err);
  }

  function again(err: unknown): void {
    const delayMs = Math.min(firstBackoffMs * 2 ** Math.min(failures, 10), longestBackoffMs);
    failures++;
    turn++;
    // Single failures are normal (etcd restarts, connections age); only a persistent one is logged.
    if (failures === 3) log.warn("etcd watch is interrupted", { prefix: options.prefix, error: String(err) });
    retry = clock.after(delayMs, open);
  }

  const watchdog = clock.every(silenceMs, () => {
    if (stream === undefined || clock.monotonic() - heard < silenceMs) return;
    if (asked) {
      lost(stream, new Error(`silent for ${Math.round(clock.monotonic() - heard)} ms`));
      return;
    }
    asked = true;
    stream.write(encodeWatchProgress());
  });

  function stop(): void {
    if (stopped) return;
    stopped = true;
    watchdog.cancel();
    retry?.cancel();
    const last = stream;
    stream = undefined;
    last?.cancel();
  }

  open();
  return {
    get revision() {
      return revision;
    },
    requestProgress() {
      if (stream === undefined || !options.progress?.trust.trusted) return false;
      stream.write(encodeWatchProgress());
      return true;
    },
    stop,
  };
}
