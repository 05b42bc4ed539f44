/**
 * A copy to be kept: in memory of its own. `Buffer.from` takes small ones from a block of 64 KiB, which stays as a whole as long as one of them does.
 */
export function ownCopy(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}
