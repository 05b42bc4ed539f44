import protobuf from "protobufjs";

/** Protobuf messages by name; a field is `[number, type]`, `T[]` is repeated, `map` is a map from string to string. */
type MessageTable = Readonly<Record<string, Readonly<Record<string, readonly [number, string]>>>>;

/** The TypeScript type of a field's type, other than a message. Numbers and enums of any size are numbers. */
type Scalar<T> = T extends "string"
  ? string
  : T extends "bool"
    ? boolean
    : T extends "bytes"
      ? Buffer
      : T extends "map"
        ? Record<string, string>
        : number;
type ReceivedField<M, T> = T extends `${infer Item}[]`
  ? Item extends keyof M
    ? Received<M, Item>[]
    : Scalar<Item>[]
  : T extends keyof M
    ? Received<M, T> | null
    : Scalar<T>;
type SentField<M, T> = T extends `${infer Item}[]` ? readonly SentField<M, Item>[] : T extends keyof M ? Sent<M, T> : Scalar<T>;

/** A decoded message of a table: fields that were not sent have the zero value (`null` for messages). */
export type Received<M, N extends keyof M> = {
  [F in keyof M[N]]: M[N][F] extends readonly [number, infer T] ? ReceivedField<M, T> : never;
};
/** A message to send: omitted fields have the zero value. 64-bit integers are numbers in both directions. */
export type Sent<M, N extends keyof M> = {
  readonly [F in keyof M[N]]?: (M[N][F] extends readonly [number, infer T] ? SentField<M, T> : never) | undefined;
};

/** Converts plain objects to protobuf and back, with the types that a table of messages describes. */
export interface MessageCodec<M> {
  encode<N extends keyof M & string>(name: N, message: Sent<M, N>): Buffer;
  decode<N extends keyof M & string>(name: N, bytes: Uint8Array): Received<M, N>;
}

/** The table of a codec. */
export type MessagesOf<C> = C extends MessageCodec<infer M> ? M : never;

/** Creates a codec from a table of messages and, if needed, enums. */
export function newMessageCodec<const M extends MessageTable>(
  messages: M,
  enums: Readonly<Record<string, Readonly<Record<string, number>>>> = {},
): MessageCodec<M> {
  const nested: Record<string, protobuf.AnyNestedObject> = {};
  for (const [name, values] of Object.entries(enums)) nested[name] = { values };
  for (const [name, fields] of Object.entries(messages)) {
    const described: Record<string, protobuf.IField | protobuf.IMapField> = {};
    for (const [field, [id, type]] of Object.entries(fields)) {
      if (type === "map") described[field] = { keyType: "string", type: "string", id };
      else if (type.endsWith("[]")) described[field] = { rule: "repeated", type: type.slice(0, -2), id };
      else described[field] = { type, id };
    }
    nested[name] = { fields: described };
  }
  const root = protobuf.Root.fromJSON({ nested });
  return {
    encode(name, message) {
      const type = root.lookupType(name);
      return type.encode(type.fromObject(message)).finish() as Buffer; // cast: what protobufjs makes in Node
    },
    decode<N extends keyof M & string>(name: N, bytes: Uint8Array) {
      const type = root.lookupType(name);
      const decoded = type.toObject(type.decode(bytes), { defaults: true, arrays: true, objects: true, longs: Number });
      return decoded as Received<M, N>; // cast: the decoder and the type are of the same table
    },
  };
}
