/** FNV-1a, 32 bits. */
export function fnv32a(bytes: Uint8Array): number {
  let hash = offsetBasis;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, prime);
  return hash >>> 0;
}

/** FNV-1, 32 bits: multiplies before the XOR. */
export function fnv32(bytes: Uint8Array): number {
  let hash = offsetBasis;
  for (const byte of bytes) hash = Math.imul(hash, prime) ^ byte;
  return hash >>> 0;
}

const offsetBasis = 0x811c9dc5;
const prime = 0x01000193;
