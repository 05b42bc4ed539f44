import protobuf from "protobufjs/minimal.js";
import { readBigInt, readInt } from "./wire.ts";

/**
 * etcd's messages about the cluster: the members, and the status of one of them.
 * Source: etcd api/etcdserverpb/rpc.proto, Cluster and Maintenance
 */
export interface Member {
  id: bigint;
  /** The URLs it advertises; empty before its first start. */
  clientUrls: string[];
}

export interface StatusResponse {
  /** Id of the responding member. */
  memberId: bigint;
  /** `3.4.23` */
  version: string;
  dbSizeBytes: number;
  /** The member's problems, as text: `memberID:8211f1d0f64f3269 alarm:NOSPACE `. */
  errors: string[];
}

// Field tags: number << 3 | wire type (0 varint, 2 length-delimited).

/** `linearizable: true`. etcd 3.4 ignores the field and answers from the member's local state. */
export const memberListRequest: Buffer = Buffer.from([8, 1]);

/** etcdserverpb.MemberListResponse, in etcd's order; unknown fields are skipped. */
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

/** Absent fields are empty or 0; unknown fields are skipped. */
export function decodeStatus(bytes: Uint8Array): StatusResponse {
  const reader = protobuf.Reader.create(bytes);
  const status: StatusResponse = { memberId: 0n, version: "", dbSizeBytes: 0, errors: [] };
  while (reader.pos < bytes.length) {
    const tag = reader.uint32();
    if (tag === 10) status.memberId = readMemberId(reader);
    else if (tag === 18) status.version = reader.string();
    else if (tag === 24) status.dbSizeBytes = readInt(reader);
    else if (tag === 66) status.errors.push(reader.string());
    else reader.skipType(tag & 7);
  }
  return status;
}

/** The member id of a response header. */
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
