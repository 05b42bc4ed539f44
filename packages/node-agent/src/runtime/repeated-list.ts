import protobuf from "protobufjs/minimal.js";

/** An item with a copy of its bytes. */
interface Known<T> {
  readonly bytes: Buffer;
  readonly item: T;
}

/** First byte of field 1 of a message, when it is a string or message. */
const firstField = 10;

/**
 * Decodes a list that is requested every second and whose items rarely change, but come in any order: an item whose bytes are those of
 * the last list is not decoded again. Items are shared between lists and must not be modified.
 */
export class RepeatedList<T> {
  readonly #decodeItem: (bytes: Buffer) => T;
  /** Items of the last list by ID. */
  #known = new Map<string, Known<T>>();

  /** @param decodeItem decodes an item, whose first field is its ID */
  constructor(decodeItem: (bytes: Buffer) => T) {
    this.#decodeItem = decodeItem;
  }

  /**
   * @param bytes a message with the items in field 1
   * @returns the items in the message's order
   * @throws Error for malformed bytes
   */
  decode(bytes: Buffer): T[] {
    const reader = protobuf.Reader.create(bytes);
    const known = new Map<string, Known<T>>();
    const items: T[] = [];
    while (reader.pos < reader.len) {
      const tag = reader.uint32();
      if (tag !== firstField) {
        reader.skipType(tag & 7);
        continue;
      }
      const length = reader.uint32();
      const start = reader.pos;
      reader.skip(length);
      const entry = bytes.subarray(start, start + length);
      const id = idIn(entry);
      const before = this.#known.get(id);
      const same = before?.bytes.equals(entry) === true ? before : { bytes: Buffer.from(entry), item: this.#decodeItem(entry) };
      known.set(id, same);
      items.push(same.item);
    }
    this.#known = known;
    return items;
  }
}

/** The first field of a message as text; "" when it is not a string of at most 127 bytes. */
function idIn(entry: Buffer): string {
  const length = entry[1] ?? 0;
  return entry[0] === firstField && length < 0x80 ? entry.toString("latin1", 2, 2 + length) : "";
}
