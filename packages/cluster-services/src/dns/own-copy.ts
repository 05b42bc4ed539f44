/** A copy in separate memory, for caches. `Buffer.from` may use a part of a shared block, all of which a kept copy would retain. */
export function ownCopy(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}
