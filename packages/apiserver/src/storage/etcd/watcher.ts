import type { Clock, Timer } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { EtcdClient } from "./client.ts";
import type { GrpcStream } from "./grpc.ts";
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
 * A watch on everything below a prefix that never skips: whole revisions, in order, across reconnections.
 * It goes on after the last event's mod revision and never after a header's: a header can be ahead of events that are
 * still to come (etcd #15220). For the same reason a progress reply proves no more than that the stream lives, unless
 * every member is known to send true ones.
 */
export interface EtcdWatch {
  /** Every event up to here was handed over. */
  readonly revision: number;
  /**
   * Asks how far the watch is; `onProgress` tells, unless etcd has nothing to say yet.
   * @returns false, and does nothing, when the answer could not be trusted
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
  /** Events of whole revisions, ascending. The next ones wait for the promise, if there is one; it must not be rejected. */
  onEvents(events: WatchEventMessage[], revision: number): void | Promise<void>;
  /** The wanted revision is gone; the watch is over. */
  onCompacted(compactRevision: number): void;
  /** For watches that want to know how far they are when nothing happens. Told after all events up to the revision. */
  progress?: {
    trust: ProgressTrust;
    onProgress(revision: number): void;
    /** An event came that progress had passed over: it told what is not so. The watch is over. */
    onUntrue(): void;
  };
  clock: Clock;
  log: Logger;
}

/** A stream that said nothing for this long is asked for progress; one that stays silent as long again is replaced. */
const silenceMs = 10_000;
const firstBackoffMs = 50;
const longestBackoffMs = 2_000;

export function startEtcdWatch(options: EtcdWatchOptions): EtcdWatch {
  const { client, clock, log } = options;
  let revision = options.after;
  /** Of the last event; `revision` is ahead of it where etcd has said that nothing is between. */
  let seen = options.after;
  let stopped = false;
  let turn = 0;
  let failures = 0;
  let stream: GrpcStream | undefined;
  let pending: WatchEventMessage[] = [];
  /** Answers that wait until `onEvents` is done with those before them. */
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
    const mine: GrpcStream = client.openWatch(turn, {
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
        // Not the one after it: etcd takes a start at the very revision it compacted to, where before 3.4.34 and 3.5.16 it
        // has forgotten a deletion (etcd #18089), and the state before it in any case. What is known comes again.
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
    // Only now it is sure which member this is, and that it does not come back in an older version unnoticed.
    if (response.created) options.progress?.trust.ask();
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
    // etcd may send again what was sent before a reconnection.
    const fresh = (events[0] as WatchEventMessage).kv.modRevision > seen ? events : events.filter((e) => e.kv.modRevision > seen);
    const first = fresh[0]?.kv.modRevision;
    if (first === undefined) return;
    if (first <= revision) {
      // Whoever relied on the reply has read too early, and may have told clients to go on after it.
      log.error("etcd has told of progress before it sent an event", undefined, { progress: revision, event: first });
      stop();
      options.progress?.trust.refute();
      options.progress?.onUntrue();
      return;
    }
    seen = last;
    revision = last;
    const busy = options.onEvents(fresh, last);
    if (busy === undefined) return;
    delivering = true;
    void busy.then(goOn);
  }

  function goOn(): void {
    delivering = false;
    while (!delivering && !stopped && backlog.length > 0) receive(backlog.shift() as WatchResponse);
  }

  function lost(which: typeof stream, err: unknown): void {
    // Without one it is lost already: an answer that it left behind says so once more.
    if (stopped || stream === undefined || which !== stream) return;
    stream = undefined;
    which?.cancel();
    again(err);
  }

  function again(err: unknown): void {
    const delayMs = Math.min(firstBackoffMs * 2 ** Math.min(failures, 10), longestBackoffMs);
    failures++;
    turn++;
    // The first loss is usual (etcd restarts, connections age); one that lasts is worth a line.
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
