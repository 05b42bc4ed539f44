/**
 * Allocated numbers of a range, encoded like upstream: bit n of a big-endian integer without leading zeros.
 * Source: pkg/registry/core/service/allocator/bitmap.go
 */
export interface Bitmap {
  has(offset: number): boolean;
  set(offset: number): void;
  clear(offset: number): void;
  count(): number;
  /** Allocated numbers, lowest first. */
  offsets(): Generator<number>;
  /** base64. */
  encode(): string;
}

/** @param size of the range; bits beyond it are dropped */
export function decodeBitmap(base64: string, size: number): Bitmap {
  const bytes = Buffer.alloc(Math.ceil(size / 8)); // little-endian: bytes[0] has the lowest eight bits
  const stored = Buffer.from(base64, "base64");
  for (let i = 0; i < Math.min(stored.length, bytes.length); i++) bytes[i] = stored[stored.length - 1 - i]!;
  const at = (offset: number): [number, number] => [offset >> 3, 1 << (offset & 7)];
  return {
    has(offset) {
      const [byte, mask] = at(offset);
      return ((bytes[byte] ?? 0) & mask) !== 0;
    },
    set(offset) {
      const [byte, mask] = at(offset);
      bytes[byte] = bytes[byte]! | mask;
    },
    clear(offset) {
      const [byte, mask] = at(offset);
      bytes[byte] = bytes[byte]! & ~mask;
    },
    count() {
      let count = 0;
      for (const byte of bytes) for (let rest = byte; rest !== 0; rest &= rest - 1) count++;
      return count;
    },
    *offsets() {
      for (let byte = 0; byte < bytes.length; byte++) {
        const value = bytes[byte]!;
        if (value === 0) continue;
        for (let bit = 0; bit < 8; bit++) if ((value & (1 << bit)) !== 0) yield byte * 8 + bit;
      }
    },
    encode() {
      let last = bytes.length;
      while (last > 0 && bytes[last - 1] === 0) last--;
      return Buffer.from(bytes.subarray(0, last)).reverse().toString("base64");
    },
  };
}
