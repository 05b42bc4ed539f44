import { everyWatch } from "@coxswain/apiserver/storage/etcd/wire";
import type { MemoryEtcd, Revision } from "./memory-etcd.ts";
import { decodeWatchRequest, encodeWatchResponse } from "./watch-messages.ts";

/** Receives a watch's messages. */
interface WatchOutput {
  /** @param what names the message, for traces */
  send(what: string, message: Buffer): void;
  /** The store was restored; no further messages follow. */
  broken(): void;
}

/** The server side of one watch stream, without a network. */
export class ServedWatch {
  readonly #etcd: MemoryEtcd;
  readonly #output: WatchOutput;
  /** Functions that end the stream's watches, by watch ID. */
  readonly #watches = new Map<number, () => void>();
  #nextId = 0;

  constructor(etcd: MemoryEtcd, output: WatchOutput) {
    this.#etcd = etcd;
    this.#output = output;
  }

  /** Handles one encoded WatchRequest of the stream: creates, cancels or reports the progress of a watch. */
  request(message: Uint8Array): void {
    const etcd = this.#etcd;
    const request = decodeWatchRequest(message);
    if (request.type === "progress") {
      this.#send("progress", { revision: etcd.revision, watchId: everyWatch });
      return;
    }
    if (request.type === "cancel") {
      const { watchId } = request;
      this.#watches.get(watchId)?.();
      if (this.#watches.delete(watchId)) this.#send("canceled", { revision: etcd.revision, watchId, canceled: true });
      return;
    }
    const { key, end, prevKv } = request.create;
    // Without a start revision a watch begins with the next change.
    const startRevision = request.create.startRevision || etcd.revision + 1;
    const watchId = this.#nextId++;
    const report = ({ revision, events }: Revision): void => {
      const wanted = events.filter(({ kv }) => (end === undefined ? kv.key === key : kv.key >= key && kv.key < end));
      if (wanted.length === 0 || revision < startRevision) return;
      const shown = prevKv ? wanted : wanted.map((event) => ({ ...event, prevKv: undefined }));
      this.#send(`event ${revision}`, { revision, watchId, events: shown });
    };
    this.#send("created", { revision: etcd.revision, watchId, created: true });
    let missed: readonly Revision[];
    try {
      missed = etcd.since(startRevision);
    } catch {
      this.#send("compacted", { revision: etcd.revision, watchId, canceled: true, compactRevision: etcd.compacted });
      return;
    }
    for (const written of missed) report(written);
    const stops = [etcd.onWrite(report), etcd.onRestore(() => this.#output.broken())];
    this.#watches.set(watchId, () => {
      for (const stop of stops) stop();
    });
  }

  close(): void {
    for (const stop of this.#watches.values()) stop();
    this.#watches.clear();
  }

  #send(what: string, response: Parameters<typeof encodeWatchResponse>[0]): void {
    this.#output.send(what, encodeWatchResponse(response));
  }
}
