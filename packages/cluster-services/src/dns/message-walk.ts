import { headerBytes, types } from "./protocol.ts";

/** Position of a record in a message, for cutting and changing it in place. */
export interface RecordPlace {
  readonly section: "answer" | "authority";
  readonly type: number;
  readonly ttlAt: number;
  readonly ttl: number;
  readonly dataAt: number;
  readonly end: number;
}

export interface WalkedMessage {
  readonly id: number;
  readonly bits: number;
  /** The question's bytes. */
  readonly question: Buffer;
  /** Records of the answer and authority sections, in order; additional ones are left out. */
  readonly records: readonly RecordPlace[];
}

/**
 * Finds the records of another server's response without following compression pointers, in one pass.
 * @returns undefined for a message that is malformed up to the end of the authority section, or has not exactly one question
 */
export function walkResponse(message: Buffer): WalkedMessage | undefined {
  if (message.length < headerBytes || message.readUInt16BE(4) !== 1) return undefined;
  const afterName = skipName(message, headerBytes);
  if (afterName === undefined || afterName + 4 > message.length) return undefined;
  const questionEnd = afterName + 4;
  const answers = message.readUInt16BE(6);
  const total = answers + message.readUInt16BE(8);
  const records: RecordPlace[] = [];
  for (let at = questionEnd; records.length < total; ) {
    const fixed = skipName(message, at);
    if (fixed === undefined || fixed + 10 > message.length) return undefined;
    at = fixed + 10 + message.readUInt16BE(fixed + 8);
    if (at > message.length) return undefined;
    records.push({
      section: records.length < answers ? "answer" : "authority",
      type: message.readUInt16BE(fixed),
      ttlAt: fixed + 4,
      ttl: Math.min(message.readUInt32BE(fixed + 4), longestTtl),
      dataAt: fixed + 10,
      end: at,
    });
  }
  const question = message.subarray(headerBytes, questionEnd);
  return { id: message.readUInt16BE(0), bits: message.readUInt16BE(2), question, records };
}

/** Source: RFC 2181, section 8 */
const longestTtl = 0x7fffffff;

function skipName(message: Buffer, start: number): number | undefined {
  for (let at = start; ; ) {
    const length = message[at];
    if (length === undefined) return undefined;
    if (length === 0) return at + 1;
    if (length >= 0xc0) return at + 2 <= message.length ? at + 2 : undefined;
    if (length > 63) return undefined;
    at += 1 + length;
  }
}

/**
 * How long a response may be repeated, in seconds: the shortest TTL, or for a response without an answer what its SOA record says,
 * if that is shorter.
 * @returns undefined when it must not be repeated. Source: RFC 2308
 */
export function lifetimeOf(message: Buffer, records: readonly RecordPlace[], isNegative: boolean): number | undefined {
  const shortest = records.reduce<number | undefined>((least, { ttl }) => Math.min(least ?? ttl, ttl), undefined);
  if (!isNegative) return shortest;
  const soa = records.find(({ section, type }) => section === "authority" && type === types.SOA);
  if (soa === undefined || soa.end - soa.dataAt < 22) return undefined;
  return Math.min(shortest ?? 0, message.readUInt32BE(soa.end - 4));
}
