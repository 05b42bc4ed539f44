import { newFieldsDecoder } from "./hpack-decoder.ts";
import { HpackError } from "./hpack-error.ts";

/** Longer blocks are not cached: they are rare or unique. */
const mostKnownBytes = 256;
const mostKnown = 256;

/**
 * Decodes the header blocks of a connection on which this side announced a dynamic table of 0 bytes, so that equal bytes always
 * mean equal fields. Responses repeat a few blocks; these are cached by their bytes.
 * @returns a decoder of one block; of a repeated field the last value wins
 * @throws HpackError for a block that is malformed, refers to the dynamic table or decodes to more than 1 MiB
 */
export function newStaticFieldsDecoder(): (block: Buffer) => ReadonlyMap<string, string> {
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
