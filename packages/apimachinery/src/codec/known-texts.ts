/**
 * Cache of short strings that occur repeatedly, e.g. enumeration values, labels and names. A lookup by bytes is faster
 * than creating a new string, and saves memory.
 */
const slots: (string | undefined)[] = new Array(4096).fill(undefined);
const longest = 32;

/** @returns the string for the bytes; undefined for long or non-ASCII text */
export function knownText(bytes: Buffer, start: number, length: number): string | undefined {
  if (length > longest) return undefined;
  let hash = length;
  for (let i = 0; i < length; i++) {
    const byte = bytes[start + i] as number;
    if (byte > 0x7f) return undefined;
    hash = (Math.imul(hash, 31) + byte) | 0;
  }
  const slot = hash & (slots.length - 1);
  const known = slots[slot];
  if (known !== undefined && known.length === length && isAt(bytes, start, known)) return known;
  const text = bytes.toString("latin1", start, start + length);
  slots[slot] = text;
  return text;
}

function isAt(bytes: Buffer, start: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) !== bytes[start + i]) return false;
  return true;
}
