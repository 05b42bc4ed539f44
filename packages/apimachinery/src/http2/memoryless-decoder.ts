import { newFieldsDecoder } from "./hpack-decoder.ts";
import { HpackError } from "./hpack-error.ts";

/** A block longer than this is rare, or not the same as any before. */
const mostKnownBytes = 256;
const mostKnown = 256;

/**
 * Reads the blocks of a connection whose receiver announced a dynamic table of 0 bytes: a block means the same wherever it comes.
 * The same few come with every answer; they are looked up by their bytes.
 * @returns takes a block; a field that comes twice has its last value @throws HpackError for a block that is malformed, needs a
 * memory or means more than 1 MiB
 */
export function newMemorylessDecoder(): (block: Buffer) => ReadonlyMap<string, string> {
  const decoder = newFieldsDecoder({ tableBytes: 0 });
  const known = new Map<string, ReadonlyMap<string, string>>();
  return (block) => {
    if (block.length > mostKnownBytes) return decode(block);
    const key = block.toString("latin1");
    let fields = known.get(key);
    if (fields === undefined) {
      fields = decode(block);
      if (known.size >= mostKnown) known.clear();
      known.set(key, fields);
    }
    return fields;
  };

  function decode(block: Buffer): ReadonlyMap<string, string> {
    const { fields, tooLarge } = decoder.decode(block);
    if (tooLarge) throw new HpackError("the header fields of an answer are too large");
    const byName = new Map<string, string>();
    for (let i = 0; i < fields.length; i += 2) byName.set(fields[i] as string, fields[i + 1] as string);
    return byName;
  }
}
