import { internalError, resourceExpired } from "@coxswain/apimachinery/objects/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { transition } from "../selection.ts";
import type { Entry, WatchRequest, WatchStream } from "../storage.ts";
import { WatchQueue } from "../watch-queue.ts";
import type { StoredValues } from "./stored-values.ts";
import type { EtcdWatch, EtcdWatchOptions } from "./watcher.ts";
import { startEtcdWatch } from "./watcher.ts";
import type { WatchEventMessage } from "./wire.ts";

interface StoreWatchOptions extends Pick<EtcdWatchOptions, "client" | "clock" | "log"> {
  /** `/registry/pods/`. */
  readonly prefix: string;
  readonly values: StoredValues;
  readonly request: WatchRequest;
  /** The watch begins after this revision. */
  readonly after: number;
  /** The current objects, delivered first as ADDED. */
  readonly initial: readonly Entry[];
}

/** A watch of one resource that reads etcd; it ends with an ERROR when etcd has compacted `after`, or a value cannot be decoded. */
export function watchStore({ client, clock, log, prefix, values, request, after, initial }: StoreWatchOptions): WatchStream {
  let source: EtcdWatch | undefined;
  const queue = new WatchQueue({ initial, signal: request.signal, onStop: () => source?.stop() });
  if (queue.ended) return queue;
  source = startEtcdWatch({
    client,
    prefix: prefix + request.prefix,
    single: request.prefix !== "" && !request.prefix.endsWith("/"),
    after,
    prevKv: true,
    clock,
    log,
    async onEvents(events) {
      try {
        for (const event of events) {
          const { kv, prevKv } = event;
          const previous = prevKv === undefined ? undefined : await values.entry(prevKv);
          const current = event.type === "put" ? await values.entry(kv) : undefined;
          if (previous === undefined && kv.createRevision !== kv.modRevision) throw stateBeforeIsGone(event);
          const seen = transition(request, previous, current, kv.modRevision);
          if (seen !== undefined && !queue.push(seen)) return;
        }
      } catch (err) {
        queue.fail(err instanceof Error ? err : new Error(String(err)));
      }
    },
    onCompacted(compactRevision) {
      queue.fail(resourceExpired(`too old resource version: ${after} (${compactRevision})`));
    },
  });
  if (queue.ended) source.stop();
  return queue;
}

/**
 * The previous state was compacted before the event arrived: whether the watcher knew the object cannot be determined.
 * Source: etcd3/event.go parseEvent
 */
function stateBeforeIsGone({ type, kv }: WatchEventMessage): Error {
  const what = `key=${goQuote(kv.key)}, modRevision=${kv.modRevision}, type=${type.toUpperCase()}`;
  return internalError(new Error(`etcd event received with PrevKv=nil (${what})`));
}
