import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { LRUCache } from "lru-cache";
import { lifetimeOf, type RecordPlace } from "./message-walk.ts";
import { ownCopy } from "./own-copy.ts";
import { flags, headerBytes, rcodes, types } from "./protocol.ts";
import type { Query } from "./query.ts";
import { optBytes, writeHeader, writeOpt } from "./reply.ts";

/** Another server's response without its additional section. */
export interface Relayed {
  readonly message: Buffer;
  readonly records: readonly RecordPlace[];
  readonly rcode: number;
  /** How long it was in the cache, in whole seconds, by which TTLs are reduced. */
  readonly ageSeconds?: number;
}

interface RelayCache {
  get(key: string): Relayed | undefined;
  /** Keeps an answer as long as it says, but no longer than the limits. */
  put(key: string, answer: Relayed): void;
  readonly size: number;
}

/** Source: CoreDNS' plugin cache with `cache 30`, and its entries' number */
const mostSeconds = 30;
/** Source: RFC 2308, section 7.1 says at most 5 minutes */
const failureSeconds = 5;
const mostEntries = 9_984;
const mostBytes = 16 * 1024 * 1024;

export function newRelayCache(clock: Clock): RelayCache {
  const entries = new LRUCache<string, { answer: Relayed; at: number; until: number }>({
    max: mostEntries,
    maxSize: mostBytes,
    sizeCalculation: ({ answer }, key) => answer.message.length + answer.records.length * 200 + key.length + 600,
  });
  let sweptAt = clock.monotonic();
  /** Most names are not asked for again. */
  const forgetOld = (now: number): void => {
    if (now - sweptAt < mostSeconds * 1000) return;
    sweptAt = now;
    for (const [key, { until }] of entries) if (until <= now) entries.delete(key);
  };
  return {
    get size() {
      return entries.size;
    },
    get(key) {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      const now = clock.monotonic();
      if (now < entry.until) return { ...entry.answer, ageSeconds: Math.floor((now - entry.at) / 1000) };
      entries.delete(key);
      return undefined;
    },
    put(key, answer) {
      const seconds = secondsOf(answer);
      if (seconds <= 0) return;
      const at = clock.monotonic();
      forgetOld(at);
      entries.set(key, { answer: { ...answer, message: ownCopy(answer.message) }, at, until: at + seconds * 1000 });
    },
  };
}

function secondsOf({ message, records, rcode }: Relayed): number {
  if (rcode !== rcodes.noError && rcode !== rcodes.nxDomain) return failureSeconds;
  const isNegative = rcode === rcodes.nxDomain || !records.some(({ section }) => section === "answer");
  return Math.min(lifetimeOf(message, records, isNegative) ?? 0, mostSeconds);
}

/** The response to a query from another server's answer, with the query's ID and spelling, current TTLs, and cut to the limit. */
export function encodeRelayed(query: Query, relayed: Relayed, limitBytes: number): Buffer {
  const { message, records, rcode, ageSeconds = 0 } = relayed;
  const limit = limitBytes - (query.edns === undefined ? 0 : optBytes);
  const fitting = message.length <= limit ? records.length : records.findIndex(({ end }) => end > limit);
  const end = records[fitting - 1]?.end ?? headerBytes + query.question.length;
  const answers = records.filter(({ section }) => section === "answer").length;
  const isTruncated = fitting < answers;
  const response = Buffer.allocUnsafe(end + (query.edns === undefined ? 0 : optBytes));
  message.copy(response, 0, 0, end);
  query.question.copy(response, headerBytes);
  writeHeader(response, query, isTruncated ? flags.truncated : 0, rcode);
  response.writeUInt16BE(1, 4);
  response.writeUInt16BE(Math.min(fitting, answers), 6);
  response.writeUInt16BE(Math.max(0, fitting - answers), 8);
  response.writeUInt16BE(query.edns === undefined ? 0 : 1, 10);
  for (const { type, ttl, ttlAt } of records.slice(0, fitting)) {
    if (type !== types.OPT) response.writeUInt32BE(Math.max(0, ttl - ageSeconds), ttlAt);
  }
  if (query.edns !== undefined) writeOpt(response, end, query, rcode);
  return response;
}
