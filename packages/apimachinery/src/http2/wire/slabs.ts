/**
 * Pool of buffers for socket writes. With a new Buffer for each write, most garbage of a server that sends events would be
 * external memory, which triggers full V8 collections, and the kernel would have to supply fresh pages each time.
 */

/** Slab sizes are multiples of this. */
const stepBytes = 8 * 1024;
/** Larger buffers are not pooled. */
export const largestSlabBytes = 256 * 1024;
/** Upper bound of pooled bytes. A thousand connections with one event each need 8 MiB in one event-loop turn. */
const mostKeptBytes = 16 * 1024 * 1024;

/** Free slabs, indexed by size / stepBytes. */
const kept: Buffer[][] = Array.from({ length: largestSlabBytes / stepBytes + 1 }, () => []);
let keptBytes = 0;

/** @returns a buffer of at least `bytes` bytes, uninitialised */
export function takeSlab(bytes: number): Buffer {
  if (bytes > largestSlabBytes) return Buffer.allocUnsafeSlow(bytes);
  const steps = Math.max(1, Math.ceil(bytes / stepBytes));
  const slab = (kept[steps] as Buffer[]).pop();
  if (slab === undefined) return Buffer.allocUnsafeSlow(steps * stepBytes);
  keptBytes -= slab.length;
  return slab;
}

/** @param slab from {@link takeSlab}; the caller must not keep a view of it */
export function giveSlabBack(slab: Buffer): void {
  const slabs = kept[slab.length / stepBytes];
  if (slabs === undefined) return;
  slabs.push(slab);
  keptBytes += slab.length;
  while (keptBytes > mostKeptBytes) dropLargest();
}

/** The largest slabs take the most memory and are requested least often. */
function dropLargest(): void {
  const dropped = kept.findLast((slabs) => slabs.length > 0)?.pop();
  keptBytes -= dropped?.length ?? 0;
}
