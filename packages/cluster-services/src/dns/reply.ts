import { flags, headerBytes, types } from "./protocol.ts";
import type { Query } from "./query.ts";

/** A record of a response. */
export interface ResourceRecord {
  /** Encoded name; undefined: the name in the question, or `owner` of the reply. */
  readonly owner?: Buffer | undefined;
  readonly type: number;
  /** Seconds. */
  readonly ttl: number;
  /** Length and data, as dns-packet's encoders of each type write them. */
  readonly data: Buffer;
}

export interface Reply {
  readonly rcode: number;
  readonly authoritative: boolean;
  readonly answers: readonly ResourceRecord[];
  readonly authorities?: readonly ResourceRecord[];
  readonly additionals?: readonly ResourceRecord[];
  /** Index of the first answer, rotated so that clients that use the first one are spread. Default 0. */
  readonly rotation?: number;
}

/** Longest UDP response, whatever the client allows: more would be fragmented on some networks. Source: DNS Flag Day 2020 */
const mostUdpBytes = 1232;
export const mostTcpBytes = 65_535;
const plainUdpBytes = 512;
export const optBytes = 11;

/** Longest response to a query over UDP. */
export const udpLimit = ({ edns }: Query): number =>
  edns === undefined ? plainUdpBytes : Math.min(Math.max(edns.payloadBytes, plainUdpBytes), mostUdpBytes);

/** Shared: encoding is synchronous. */
const scratch = Buffer.allocUnsafe(mostTcpBytes + 1);

/** Encodes a reply. Records that do not fit into `limitBytes` are left out; when answers are, the response is marked truncated. */
export function encodeReply(query: Query, reply: Reply, limitBytes: number): Buffer {
  const { question, edns } = query;
  const limit = limitBytes - (edns === undefined ? 0 : optBytes);
  question.copy(scratch, headerBytes);
  let at = headerBytes + question.length;
  const put = (records: readonly ResourceRecord[], first: number): number => {
    for (let i = 0; i < records.length; i++) {
      const { owner, type, ttl, data } = records[(i + first) % records.length]!;
      if (at + (owner?.length ?? 2) + 8 + data.length > limit) return i;
      if (owner === undefined) at = scratch.writeUInt16BE(0xc000 | headerBytes, at);
      else at += owner.copy(scratch, at);
      at = scratch.writeUInt16BE(type, at);
      at = scratch.writeUInt16BE(1, at);
      at = scratch.writeUInt32BE(ttl, at);
      at += data.copy(scratch, at);
    }
    return records.length;
  };
  const answers = put(reply.answers, reply.rotation ?? 0);
  const isTruncated = answers < reply.answers.length;
  const authorities = isTruncated ? 0 : put(reply.authorities ?? [], 0);
  const additionals = isTruncated ? 0 : put(reply.additionals ?? [], 0);
  const bits = (reply.authoritative ? flags.authoritative : 0) | (isTruncated ? flags.truncated : 0);
  writeHeader(scratch, query, bits, reply.rcode);
  scratch.writeUInt16BE(question.length > 0 ? 1 : 0, 4);
  scratch.writeUInt16BE(answers, 6);
  scratch.writeUInt16BE(authorities, 8);
  scratch.writeUInt16BE(additionals + (edns === undefined ? 0 : 1), 10);
  if (edns !== undefined) at = writeOpt(scratch, at, query, reply.rcode);
  return Buffer.from(scratch.subarray(0, at));
}

/** A reply without records. */
export const plainReply = (rcode: number): Reply => ({ rcode, authoritative: false, answers: [] });

/** @param bits flags beside those that every response has */
export function writeHeader(target: Buffer, query: Query, bits: number, rcode: number): void {
  const requested = query.recursionDesired ? flags.recursionDesired : 0;
  const checking = query.checkingDisabled ? 0x0010 : 0;
  target.writeUInt16BE(query.id, 0);
  target.writeUInt16BE(flags.response | flags.recursion | requested | checking | bits | (rcode & 15), 2);
}

/** @returns the offset behind the OPT record */
export function writeOpt(target: Buffer, at: number, query: Query, rcode: number): number {
  target[at] = 0;
  target.writeUInt16BE(types.OPT, at + 1);
  target.writeUInt16BE(mostUdpBytes, at + 3);
  target.writeUInt32BE((((rcode >> 4) & 0xff) << 24) | (query.edns?.dnssecOk === true ? 0x8000 : 0), at + 5);
  target.writeUInt16BE(0, at + 9);
  return at + optBytes;
}
