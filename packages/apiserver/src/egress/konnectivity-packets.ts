/**
 * Packets of the konnectivity protocol. Connection IDs are 64 bits wide, hence represented as decimal strings.
 * Source: sigs.k8s.io/apiserver-network-proxy konnectivity-client/proto/client/client.proto
 */
import protobuf from "protobufjs/minimal.js";

export type Packet =
  /** Response to a dial request with the same `random`. */
  | { readonly type: "dialled"; readonly random: string; readonly connection: string; readonly error: string }
  /** The dial was aborted by the server. */
  | { readonly type: "dial-closed"; readonly random: string }
  | { readonly type: "data"; readonly connection: string; readonly bytes: Buffer }
  | { readonly type: "closed"; readonly connection: string; readonly error: string }
  /** Packet types that clients ignore. */
  | { readonly type: "other" };

const types = { dialRequest: 0, dialResponse: 1, closeRequest: 2, closeResponse: 3, data: 4, closeDial: 5 } as const;
/** Field number of the payload, by packet type. */
const contents = { dialRequest: 2, dialResponse: 3, data: 4, closeRequest: 5, closeResponse: 6, closeDial: 7 } as const;

/** @param address `10.0.0.7:443` @param random decimal number that the response repeats */
export function encodeDialRequest(address: string, random: string): Buffer {
  return encoded("dialRequest", (writer) => writer.uint32(10).string("tcp").uint32(18).string(address).uint32(24).int64(random));
}

export function encodeData(connection: string, bytes: Uint8Array): Buffer {
  return encoded("data", (writer) => writer.uint32(8).int64(connection).uint32(26).bytes(bytes));
}

export function encodeCloseRequest(connection: string): Buffer {
  return encoded("closeRequest", (writer) => writer.uint32(8).int64(connection));
}

function encoded(name: keyof typeof types, write: (writer: protobuf.Writer) => void): Buffer {
  const writer = protobuf.Writer.create();
  writer.uint32(8).uint32(types[name]);
  writer.uint32((contents[name] << 3) | 2).fork();
  write(writer);
  return Buffer.from(writer.ldelim().finish());
}

/** @throws Error for an invalid message */
export function decodePacket(bytes: Uint8Array): Packet {
  const packet = fieldsOf(bytes);
  const content = (name: keyof typeof contents): Fields => {
    const inner = packet.get(contents[name]);
    return typeof inner === "object" ? fieldsOf(inner) : new Map();
  };
  switch (Number(packet.get(1) ?? 0)) {
    case types.dialResponse: {
      const inner = content("dialResponse");
      return { type: "dialled", error: textIn(inner, 1), connection: idIn(inner, 2), random: idIn(inner, 3) };
    }
    case types.closeDial:
      return { type: "dial-closed", random: idIn(content("closeDial"), 1) };
    case types.data: {
      const inner = content("data");
      return { type: "data", connection: idIn(inner, 1), bytes: bytesIn(inner, 3) };
    }
    case types.closeResponse: {
      const inner = content("closeResponse");
      return { type: "closed", error: textIn(inner, 1), connection: idIn(inner, 2) };
    }
    default:
      return { type: "other" };
  }
}

/** Values by field number: a varint in decimal, or bytes. */
type Fields = Map<number, string | Uint8Array>;

function fieldsOf(bytes: Uint8Array): Fields {
  const fields: Fields = new Map();
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if ((tag & 7) === 0) fields.set(tag >>> 3, reader.int64().toString());
    else if ((tag & 7) === 2) fields.set(tag >>> 3, reader.bytes());
    else reader.skipType(tag & 7);
  }
  return fields;
}

function idIn(fields: Fields, number: number): string {
  const value = fields.get(number);
  return typeof value === "string" ? value : "0";
}

function bytesIn(fields: Fields, number: number): Buffer {
  const value = fields.get(number);
  return typeof value === "object" ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : Buffer.alloc(0);
}

function textIn(fields: Fields, number: number): string {
  return bytesIn(fields, number).toString("utf8");
}
