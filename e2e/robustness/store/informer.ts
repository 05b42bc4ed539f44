import { setTimeout as delay } from "node:timers/promises";
import type { RecordingClient } from "../../framework/history/recorder.ts";
import { everything, keyOf, type Read, revisionOf, type SeenEvent, type Selection } from "../../framework/history/records.ts";

/**
 * A watcher that follows the API's rules: lists, watches, resumes after the last version received, and relists when that version
 * is gone. Once it has caught up, its state must equal a fresh list.
 */
export interface Informer {
  /** Key → resourceVersion. */
  readonly state: ReadonlyMap<string, number>;
  readonly relists: number;
  readonly sessions: number;
  /** Stops it; resolves when it has stopped. */
  stop(): Promise<void>;
}

export interface InformerOptions {
  client: RecordingClient;
  prefix: string;
  selection?: Selection;
  /** Starts here once instead of with a list: it must receive everything after it, or 410. */
  from?: number | undefined;
  /** Timeout of each watch; short ones resume often. */
  timeoutSeconds: () => number;
  /** Switches to another server. */
  onFailure: () => void;
}

const retryMs = 50;

/** Runs until `stop`; failed requests are retried after `onFailure`. */
export function startInformer(options: InformerOptions): Informer {
  const { client, prefix, selection = everything } = options;
  const state = new Map<string, number>();
  const stopping = new AbortController();
  const { signal } = stopping;
  let revision = options.from;
  let relists = 0;
  let sessions = 0;
  const running = run();

  async function run(): Promise<void> {
    while (!signal.aborted) {
      if (revision === undefined) await list();
      if (revision !== undefined) await follow(revision);
    }
  }

  async function list(): Promise<void> {
    const read: Read = await client.list(prefix, { selection });
    if (read.code !== 200) return await failed();
    relists++;
    state.clear();
    for (const item of read.items) state.set(keyOf(item), revisionOf(item));
    revision = read.listRevision;
  }

  async function follow(from: number): Promise<void> {
    sessions++;
    const session = await client.watch(
      prefix,
      { selection, revision: from, timeoutSeconds: options.timeoutSeconds(), signal },
      see,
    );
    const last = session.events.at(-1);
    if (session.code === 410 || (last?.type === "ERROR" && (last.object as { code?: number }).code === 410)) revision = undefined;
    else if (session.code !== 200 || last === undefined) await failed();
  }

  function see({ type, object }: SeenEvent): void {
    if (type === "ERROR") return;
    revision = revisionOf(object);
    if (type === "DELETED") state.delete(keyOf(object));
    else if (type !== "BOOKMARK") state.set(keyOf(object), revision);
  }

  async function failed(): Promise<void> {
    options.onFailure();
    await delay(retryMs, undefined, { signal }).catch(() => {});
  }

  return {
    state,
    get relists() {
      return relists;
    },
    get sessions() {
      return sessions;
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
