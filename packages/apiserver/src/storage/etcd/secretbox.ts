/**
 * NaCl's secretbox, XSalsa20 and Poly1305, which node:crypto does not have: 16 bytes of authenticator, then the
 * ciphertext. Nothing here branches or indexes by secret values.
 * Source: https://nacl.cr.yp.to/secretbox.html, https://cr.yp.to/snuffle/xsalsa-20110204.pdf, RFC 8439 section 2.5
 */
import { timingSafeEqual } from "node:crypto";

export const secretboxNonceBytes = 24;
export const secretboxOverheadBytes = 16;

/** @param key 32 bytes. @param nonce 24 bytes, never used twice with one key. */
export function sealSecretbox(message: Uint8Array, nonce: Uint8Array, key: Uint8Array): Buffer {
  const stream = keyStream(key, nonce, 32 + message.length);
  const box = Buffer.alloc(secretboxOverheadBytes + message.length);
  for (let i = 0; i < message.length; i++) {
    box[secretboxOverheadBytes + i] = (message[i] as number) ^ (stream[32 + i] as number);
  }
  box.set(poly1305(box.subarray(secretboxOverheadBytes), stream.subarray(0, 32)));
  return box;
}

/** @returns undefined when the box was not made with this key and nonce, or was changed. */
export function openSecretbox(box: Uint8Array, nonce: Uint8Array, key: Uint8Array): Buffer | undefined {
  if (box.length < secretboxOverheadBytes) return undefined;
  const cipher = box.subarray(secretboxOverheadBytes);
  const stream = keyStream(key, nonce, 32 + cipher.length);
  if (!timingSafeEqual(poly1305(cipher, stream.subarray(0, 32)), box.subarray(0, secretboxOverheadBytes))) return undefined;
  const message = Buffer.alloc(cipher.length);
  for (let i = 0; i < cipher.length; i++) message[i] = (cipher[i] as number) ^ (stream[32 + i] as number);
  return message;
}

/** XSalsa20: the first 16 bytes of the nonce make a key of their own, the other 8 are Salsa20's nonce. */
function keyStream(key: Uint8Array, nonce: Uint8Array, length: number): Uint8Array {
  const subkey = hsalsa20(words(key), words(nonce.subarray(0, 16)));
  const [n0, n1] = words(nonce.subarray(16)) as unknown as [number, number];
  const stream = new Uint8Array(Math.ceil(length / 64) * 64);
  const view = new DataView(stream.buffer);
  const state = new Uint32Array(16);
  for (let block = 0; block * 64 < length; block++) {
    const input = layout(subkey, [n0, n1, block >>> 0, Math.floor(block / 2 ** 32)]);
    state.set(input);
    twentyRounds(state);
    for (let i = 0; i < 16; i++) view.setUint32(block * 64 + i * 4, (state[i] as number) + (input[i] as number), true);
  }
  return stream.subarray(0, length);
}

function hsalsa20(key: Uint32Array, input: Uint32Array): Uint32Array {
  const state = layout(key, input);
  twentyRounds(state);
  return Uint32Array.from([0, 5, 10, 15, 6, 7, 8, 9], (i) => state[i] as number);
}

/** "expand 32-byte k" on the diagonal. */
function layout(k: ArrayLike<number>, n: ArrayLike<number>): Uint32Array {
  const state = new Uint32Array(16);
  for (let i = 0; i < 4; i++) {
    state[i * 5] = sigma[i] as number;
    state[1 + i] = k[i] as number;
    state[6 + i] = n[i] as number;
    state[11 + i] = k[4 + i] as number;
  }
  return state;
}

const sigma = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574];

/** The four columns, then the four rows, each from its diagonal element on. */
const quarters = [
  [0, 4, 8, 12],
  [5, 9, 13, 1],
  [10, 14, 2, 6],
  [15, 3, 7, 11],
  [0, 1, 2, 3],
  [5, 6, 7, 4],
  [10, 11, 8, 9],
  [15, 12, 13, 14],
] as const;

function twentyRounds(x: Uint32Array): void {
  for (let round = 0; round < 10; round++) {
    for (const [a, b, c, d] of quarters) {
      let sum = ((x[a] as number) + (x[d] as number)) | 0;
      x[b] = (x[b] as number) ^ ((sum << 7) | (sum >>> 25));
      sum = ((x[b] as number) + (x[a] as number)) | 0;
      x[c] = (x[c] as number) ^ ((sum << 9) | (sum >>> 23));
      sum = ((x[c] as number) + (x[b] as number)) | 0;
      x[d] = (x[d] as number) ^ ((sum << 13) | (sum >>> 19));
      sum = ((x[d] as number) + (x[c] as number)) | 0;
      x[a] = (x[a] as number) ^ ((sum << 18) | (sum >>> 14));
    }
  }
}

function words(bytes: Uint8Array): Uint32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Uint32Array.from({ length: bytes.byteLength / 4 }, (_, i) => view.getUint32(i * 4, true));
}

/**
 * The sum of the blocks times powers of r, modulo 2^130 - 5, in limbs of one byte.
 * @param key 32 bytes, used once: r, then what is added at the end.
 */
export function poly1305(message: Uint8Array, key: Uint8Array): Uint8Array {
  const r = new Int32Array(17);
  for (let i = 0; i < 16; i++) r[i] = (key[i] as number) & (i % 4 === 3 ? 15 : i % 4 === 0 && i > 0 ? 252 : 255);
  const h = new Int32Array(17);
  const product = new Int32Array(17);
  for (let at = 0; at < message.length; at += 16) {
    const size = Math.min(16, message.length - at);
    const block = new Int32Array(17);
    for (let i = 0; i < size; i++) block[i] = message[at + i] as number;
    block[size] = 1;
    add(h, block);
    for (let i = 0; i < 17; i++) {
      let sum = 0;
      for (let j = 0; j <= i; j++) sum += (h[j] as number) * (r[i - j] as number);
      // 2^136 is 320 modulo 2^130 - 5.
      for (let j = i + 1; j < 17; j++) sum += 320 * (h[j] as number) * (r[i + 17 - j] as number);
      product[i] = sum;
    }
    reduce(product, h);
  }
  const before = h.slice();
  add(h, minusP);
  const isSmaller = -((h[16] as number) >>> 7);
  for (let i = 0; i < 17; i++) h[i] = (h[i] as number) ^ (isSmaller & ((before[i] as number) ^ (h[i] as number)));
  const pad = new Int32Array(17);
  for (let i = 0; i < 16; i++) pad[i] = key[16 + i] as number;
  add(h, pad);
  return Uint8Array.from(h.subarray(0, 16));
}

const minusP = Int32Array.from([5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 252]);

function add(h: Int32Array, other: Int32Array): void {
  let carry = 0;
  for (let i = 0; i < 17; i++) {
    carry += (h[i] as number) + (other[i] as number);
    h[i] = carry & 255;
    carry >>>= 8;
  }
}

/** What is above 2^130 comes back five times. */
function reduce(product: Int32Array, h: Int32Array): void {
  let carry = 0;
  for (let i = 0; i < 16; i++) {
    carry += product[i] as number;
    h[i] = carry & 255;
    carry >>>= 8;
  }
  carry += product[16] as number;
  h[16] = carry & 3;
  carry = 5 * (carry >>> 2);
  for (let i = 0; i < 16; i++) {
    carry += h[i] as number;
    h[i] = carry & 255;
    carry >>>= 8;
  }
  h[16] = (h[16] as number) + carry;
}
