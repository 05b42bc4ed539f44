/** Messages of etcd's services Cluster and Maintenance, as far as this program uses them. Source: etcd 3.4 etcdserver/etcdserverpb/rpc.proto */
import protobuf from "protobufjs/minimal.js";

export interface Member {
  /** Hexadecimal, as etcd prints it. */
  readonly id: string;
  /** "" before its first start. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly clientUrls: readonly string[];
  readonly isLearner: boolean;
}

export interface MemberStatus {
  readonly version: string;
  readonly dbSizeBytes: number;
  /** Hexadecimal; "0": there is none. */
  readonly leader: string;
  readonly raftIndex: number;
  readonly isLearner: boolean;
}

export interface SnapshotPart {
  readonly remainingBytes: number;
  readonly blob: Uint8Array;
}

/** By field number: numbers in the form of bigint, and bytes. */
type Fields = Map<number, (bigint | Uint8Array)[]>;

function fieldsOf(bytes: Uint8Array): Fields {
  const reader = protobuf.Reader.create(bytes);
  const fields: Fields = new Map();
  while (reader.pos < bytes.length) {
    const tag = reader.uint32();
    const wire = tag & 7;
    if (wire !== 0 && wire !== 2) {
      reader.skipType(wire);
      continue;
    }
    const value = wire === 0 ? varint(reader) : reader.bytes();
    const before = fields.get(tag >>> 3);
    if (before === undefined) fields.set(tag >>> 3, [value]);
    else before.push(value);
  }
  return fields;
}

/** Without a library for long numbers, protobufjs reads 64 bits as a number. */
function varint(reader: protobuf.Reader): bigint {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = reader.buf[reader.pos++] ?? 0;
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80 || shift > 63n) return BigInt.asUintN(64, value);
  }
}

const texts = (fields: Fields, number: number): string[] =>
  (fields.get(number) ?? []).map((value) => (typeof value === "bigint" ? "" : Buffer.from(value).toString()));
const whole = (fields: Fields, number: number): bigint => {
  const value = fields.get(number)?.at(-1);
  return typeof value === "bigint" ? value : 0n;
};
const message = (fields: Fields, number: number): Uint8Array => {
  const value = fields.get(number)?.at(-1);
  return value instanceof Uint8Array ? value : new Uint8Array();
};

function memberOf(bytes: Uint8Array): Member {
  const fields = fieldsOf(bytes);
  return {
    id: whole(fields, 1).toString(16),
    name: texts(fields, 2).at(-1) ?? "",
    peerUrls: texts(fields, 3),
    clientUrls: texts(fields, 4),
    isLearner: whole(fields, 5) !== 0n,
  };
}

/** Answers to MemberList, and to MemberAdd and MemberPromote, which put all members elsewhere. */
export const decodeMembers = (bytes: Uint8Array, field: 2 | 3): Member[] =>
  (fieldsOf(bytes).get(field) ?? []).map((value) => memberOf(value as Uint8Array));

export const encodeMemberAdd = (peerUrl: string): Buffer =>
  Buffer.from(protobuf.Writer.create().uint32(10).string(peerUrl).uint32(16).bool(true).finish());

/** MemberRemove, MemberPromote. @param id hexadecimal */
export function encodeMemberId(id: string): Buffer {
  const bytes = [8];
  for (let left = BigInt(`0x${id}`); ; left >>= 7n) {
    const byte = Number(left & 0x7fn);
    if (left < 0x80n) return Buffer.from([...bytes, byte]);
    bytes.push(byte | 0x80);
  }
}

export function decodeStatus(bytes: Uint8Array): MemberStatus {
  const fields = fieldsOf(bytes);
  return {
    version: texts(fields, 2).at(-1) ?? "",
    dbSizeBytes: Number(whole(fields, 3)),
    leader: whole(fields, 4).toString(16),
    raftIndex: Number(whole(fields, 5)),
    isLearner: whole(fields, 10) !== 0n,
  };
}

export function decodeSnapshot(bytes: Uint8Array): SnapshotPart {
  const fields = fieldsOf(bytes);
  return { remainingBytes: Number(whole(fields, 2)), blob: message(fields, 3) };
}

/** The error codes of etcd's texts that commands react to. */
export const isNotInSync = (text: string): boolean =>
  text.includes("can only promote a learner member which is in sync with leader");
export const isTooManyLearners = (text: string): boolean => text.includes("too many learner members in cluster");
export const isUnhealthy = (text: string): boolean => text.includes("unhealthy cluster");
