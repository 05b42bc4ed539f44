import type { KeyValue, WatchCreateRequest, WatchResponse } from "@coxswain/apiserver/storage/etcd/wire";
import protobuf from "protobufjs/minimal.js";

/** The server side of a watch stream: decodes the requests of the storage layer and encodes the responses. */
type WatchRequestMessage =
  | { type: "create"; create: WatchCreateRequest }
  | { type: "cancel"; watchId: number }
  | { type: "progress" };

/** etcdserverpb.WatchRequest; fields that are not supported (filters, fragments) are skipped. */
export function decodeWatchRequest(bytes: Uint8Array): WatchRequestMessage {
  const reader = protobuf.Reader.create(bytes);
  const tag = reader.uint32();
  if (tag === 26) return { type: "progress" };
  const end = reader.uint32() + reader.pos;
  if (tag === 18) {
    let watchId = 0;
    while (reader.pos < end) {
      if (reader.uint32() === 8) watchId = Number(reader.int64());
    }
    return { type: "cancel", watchId };
  }
  const create: WatchCreateRequest = { key: "", startRevision: 0, prevKv: false };
  while (reader.pos < end) {
    const field = reader.uint32();
    if (field === 10) create.key = reader.string();
    else if (field === 18) create.end = reader.string();
    else if (field === 24) create.startRevision = Number(reader.int64());
    else if (field === 48) create.prevKv = reader.bool();
    else reader.skipType(field & 7);
  }
  return { type: "create", create };
}

/** etcdserverpb.WatchResponse; absent fields have their zero value. */
export function encodeWatchResponse(response: Partial<WatchResponse> & { revision: number }): Buffer {
  const writer = protobuf.Writer.create();
  writer.uint32(10).fork().uint32(24).int64(response.revision).ldelim();
  if (response.watchId !== undefined) writer.uint32(16).int64(response.watchId);
  if (response.created) writer.uint32(24).bool(true);
  if (response.canceled) writer.uint32(32).bool(true);
  if (response.compactRevision) writer.uint32(40).int64(response.compactRevision);
  if (response.cancelReason) writer.uint32(50).string(response.cancelReason);
  for (const { type, kv, prevKv } of response.events ?? []) {
    writer.uint32(90).fork();
    if (type === "delete") writer.uint32(8).int32(1);
    writeKeyValue(writer.uint32(18).fork(), kv);
    if (prevKv !== undefined) writeKeyValue(writer.uint32(26).fork(), prevKv);
    writer.ldelim();
  }
  const bytes = writer.finish();
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Writes an mvccpb.KeyValue into a message whose tag and `fork` the caller has written. */
export function writeKeyValue(writer: protobuf.Writer, kv: KeyValue): void {
  writer.uint32(10).string(kv.key);
  writer.uint32(16).int64(kv.createRevision).uint32(24).int64(kv.modRevision).uint32(32).int64(kv.version);
  writer.uint32(42).bytes(kv.value);
  if (kv.lease !== 0n) writer.uint32(48).int64(Number(kv.lease));
  writer.ldelim();
}
