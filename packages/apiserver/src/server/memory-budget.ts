import { fieldsMemory } from "@coxswain/apimachinery/objects/codec/fields-v1";
import { ByteShare } from "@coxswain/apimachinery/process/memory/byte-share";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { HeaderMemory } from "@coxswain/apimachinery/transport/http2/server/input";
import { slabMemory } from "@coxswain/apimachinery/transport/http2/wire/buffers";
import definitions from "../metrics.json" with { type: "json" };
import { EntryMemory } from "../storage/entry.ts";
import { patternMemory } from "../structural-schema/patterns.ts";
import { HistoryMemory } from "../watch/history.ts";

const mib = 1024 * 1024;

/** Memory for cached data that can be recomputed or read again. The current objects, as JSON, are not part of it. */
const shares = {
  /** Protobuf, rows of tables and other versions of objects. */
  encodings: 128 * mib,
  /** JSON of large objects that are decoded; the objects themselves take three to ten times as much. */
  objects: 16 * mib,
  /** Chunks of lists that several clients read. */
  lists: 64 * mib,
  /** Recent changes, for watches that resume. */
  histories: 128 * mib,
  /** OpenAPI, encoded. */
  documents: 64 * mib,
} as const;

export interface MemoryBudget {
  readonly entries: EntryMemory;
  readonly histories: HistoryMemory;
  readonly lists: ByteShare;
  readonly documents: ByteShare;
  readonly headers: HeaderMemory;
}

/** The one budget of a server; each use evicts within its share. Its metrics show both. */
export function newMemoryBudget(metrics: MetricsRegistry): MemoryBudget {
  const encodings = new ByteShare(shares.encodings);
  const lists = new ByteShare(shares.lists);
  const documents = new ByteShare(shares.documents, shares.documents / 4);
  const entries = new EntryMemory(encodings, shares.objects);
  const objects = {
    limitBytes: shares.objects,
    get bytes() {
      return entries.largeBytes;
    },
  };
  const histories = new HistoryMemory(shares.histories);
  const headers = new HeaderMemory();
  // All servers of the process share parsed field sets (managed fields), compiled patterns and the free buffers of HTTP/2 connections.
  const shared = { fields: fieldsMemory, patterns: patternMemory, buffers: slabMemory };
  const uses = Object.entries({ encodings, objects, lists, histories, documents, ...shared, headers });
  metrics.gauge({
    ...definitions.coxswain_apiserver_cache_bytes,
    collect: (gauge) => {
      for (const [use, { bytes }] of uses) gauge.labels(use).set(bytes);
    },
  });
  const limit = metrics.gauge(definitions.coxswain_apiserver_cache_limit_bytes);
  for (const [use, { limitBytes }] of uses) limit.labels(use).set(limitBytes);
  return { entries, histories, lists, documents, headers };
}
