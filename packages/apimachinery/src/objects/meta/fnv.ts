// By index: an iterator takes several times as long, and templates have up to 1.5 MB.

/** FNV-1a, 32 bits. */
export function fnv32a(bytes: Uint8Array): number {
  const hash = new Fnv32a();
  hash.bytes(bytes);
  return hash.value;
}

/** FNV-1a, 32 bits, of bytes that need not be in memory together. */
export class Fnv32a {
  #hash = offsetBasis;

  get value(): number {
    return this.#hash >>> 0;
  }

  bytes(bytes: Uint8Array): void {
    let hash = this.#hash;
    for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ bytes[i]!, prime);
    this.#hash = hash;
  }

  /** Of the text in UTF-8. */
  text(text: string): void {
    let hash = this.#hash;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code >= 0x80) {
        this.#hash = hash;
        this.bytes(Buffer.from(text.slice(i)));
        return;
      }
      hash = Math.imul(hash ^ code, prime);
    }
    this.#hash = hash;
  }

  /** Of the text that Go prints for bytes: `[1 22 255]`. */
  printedBytes(bytes: Uint8Array): void {
    this.text("[");
    let hash = this.#hash;
    for (let i = 0; i < bytes.length; i++) {
      const byte = bytes[i]!;
      if (i > 0) hash = Math.imul(hash ^ 0x20, prime);
      if (byte >= 100) hash = Math.imul(hash ^ (0x30 + Math.trunc(byte / 100)), prime);
      if (byte >= 10) hash = Math.imul(hash ^ (0x30 + (Math.trunc(byte / 10) % 10)), prime);
      hash = Math.imul(hash ^ (0x30 + (byte % 10)), prime);
    }
    this.#hash = hash;
    this.text("]");
  }
}

/** FNV-1, 32 bits: multiplies before the XOR. */
export function fnv32(bytes: Uint8Array): number {
  let hash = offsetBasis;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash, prime) ^ bytes[i]!;
  return hash >>> 0;
}

const offsetBasis = 0x811c9dc5;
const prime = 0x01000193;
