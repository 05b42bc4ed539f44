// By index: an iterator takes several times as long, and templates have up to 1.5 MB.

/** FNV-1a, 32 bits. */
export function fnv32a(bytes: Uint8Array): number {
  let hash = offsetBasis;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ bytes[i]!, prime);
  return hash >>> 0;
}

/** FNV-1, 32 bits: multiplies before the XOR. */
export function fnv32(bytes: Uint8Array): number {
  let hash = offsetBasis;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash, prime) ^ bytes[i]!;
  return hash >>> 0;
}

const offsetBasis = 0x811c9dc5;
const prime = 0x01000193;
