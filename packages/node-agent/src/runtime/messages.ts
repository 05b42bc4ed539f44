import protobuf from "protobufjs";

/** Protobuf messages by name; a field is `[number, type]`, `T[]` is repeated, `map` is a map from string to string. */
type MessageTable = Readonly<Record<string, Readonly<Record<string, readonly [number, string]>>>>;

/** Converts plain objects to protobuf and back. */
export interface MessageCodec {
  encode(name: string, message: object): Buffer;
  /** Fields that were not sent have the zero value; 64-bit integers are numbers. */
  decode(name: string, bytes: Uint8Array): Record<string, unknown>;
}

/** Creates a codec from a table of messages and, if needed, enums. */
export function newMessageCodec(
  messages: MessageTable,
  enums: Readonly<Record<string, Readonly<Record<string, number>>>> = {},
): MessageCodec {
  const nested: Record<string, unknown> = {};
  for (const [name, values] of Object.entries(enums)) nested[name] = { values };
  for (const [name, fields] of Object.entries(messages)) {
    const described: Record<string, unknown> = {};
    for (const [field, [id, type]] of Object.entries(fields)) {
      if (type === "map") described[field] = { keyType: "string", type: "string", id };
      else if (type.endsWith("[]")) described[field] = { rule: "repeated", type: type.slice(0, -2), id };
      else described[field] = { type, id };
    }
    nested[name] = { fields: described };
  }
  const root = protobuf.Root.fromJSON({ nested } as protobuf.INamespace);
  return {
    encode(name, message) {
      const type = root.lookupType(name);
      return type.encode(type.fromObject(message)).finish() as Buffer;
    },
    decode(name, bytes) {
      const type = root.lookupType(name);
      return type.toObject(type.decode(bytes), { defaults: true, arrays: true, objects: true, longs: Number });
    },
  };
}
