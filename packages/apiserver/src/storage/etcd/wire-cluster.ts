import protobuf from "protobufjs/minimal.js";
import { readBigInt, readInt } from "./wire.ts";

/**
 * etcd's messages about the cluster itself: who its members are, and how each of them is.
 * Source: etcd api/etcdserverpb/rpc.proto, Cluster and Maintenance
 */
export interface Member {
  id: bigint;
  /** Where it says that it can be reached; none before it has started for the first time. */
  clientUrls: string[];
}

export interface StatusResponse {
  /** Of the member that answers. */
  memberId: bigint;
  /** `3.4.23` */
  version: string;
  dbSizeBytes: number;
  leader: bigint;
  /** What is wrong with the member in its own words: `memberID:8211f1d0f64f3269 alarm:NOSPACE `. */
  errors: string[];
}

// Field tags: number << 3 | wire type (0 varint, 2 length-delimited).

/** Etcd 3.4 does not know that it is asked for what the whole cluster agrees on, and answers what the member knows. */
export const memberListRequest: Buffer = Buffer.from([8, 1]);

export function decodeMemberList(bytes: Uint8Array): Member[] {
  const reader = protobuf.Reader.create(bytes);
  const members: Member[] = [];
  while (reader.pos < bytes.length) {
    const tag = reader.uint32();
    if (tag === 18) members.push(readMember(reader));
    else reader.skipType(tag & 7);
  }
  return members;
}

function readMember(reader: protobuf.Reader): Member {
  const end = reader.uint32() + reader.pos;
  const member: Member = { id: 0n, clientUrls: [] };
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 8) member.id = readBigInt(reader);
    else if (tag === 34) member.clientUrls.push(reader.string());
    else reader.skipType(tag & 7);
  }
  return member;
}

export function decodeStatus(bytes: Uint8Array): StatusResponse {
  const reader = protobuf.Reader.create(bytes);
  const status: StatusResponse = { memberId: 0n, version: "", dbSizeBytes: 0, leader: 0n, errors: [] };
  while (reader.pos < bytes.length) {
    const tag = reader.uint32();
    if (tag === 10) status.memberId = readMemberId(reader);
    else if (tag === 18) status.version = reader.string();
    else if (tag === 24) status.dbSizeBytes = readInt(reader);
    else if (tag === 32) status.leader = readBigInt(reader);
    else if (tag === 66) status.errors.push(reader.string());
    else reader.skipType(tag & 7);
  }
  return status;
}

/** Of a response's header. */
function readMemberId(reader: protobuf.Reader): bigint {
  const end = reader.uint32() + reader.pos;
  let id = 0n;
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 16) id = readBigInt(reader);
    else reader.skipType(tag & 7);
  }
  return id;
}
