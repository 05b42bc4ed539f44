/**
 * Memory for what is written to sockets, used again when it is written. A new Buffer for each write would be most of the garbage
 * of a server that sends events: V8 collects its whole heap when that much comes from outside of it, and the kernel is asked for
 * fresh pages each time.
 */

/** Slabs have sizes of whole steps. */
const stepBytes = 8 * 1024;
/** The largest that is used again. */
export const largestSlabBytes = 256 * 1024;
/** Of all sizes. A thousand connections with an event each need 8 MiB in one turn of the loop. */
const mostKeptBytes = 16 * 1024 * 1024;

/** By their number of steps. */
const kept: Buffer[][] = Array.from({ length: largestSlabBytes / stepBytes + 1 }, () => []);
let keptBytes = 0;

/** @returns with room for so many bytes */
export function takeSlab(bytes: number): Buffer {
  if (bytes > largestSlabBytes) return Buffer.allocUnsafeSlow(bytes);
  const steps = Math.max(1, Math.ceil(bytes / stepBytes));
  const slab = (kept[steps] as Buffer[]).pop();
  if (slab === undefined) return Buffer.allocUnsafeSlow(steps * stepBytes);
  keptBytes -= slab.length;
  return slab;
}

/** @param slab of {@link takeSlab}; nobody may hold a part of it any more */
export function giveSlabBack(slab: Buffer): void {
  const slabs = kept[slab.length / stepBytes];
  if (slabs === undefined) return;
  slabs.push(slab);
  keptBytes += slab.length;
  while (keptBytes > mostKeptBytes) dropLargest();
}

/** They take the most room, and are asked for least. */
function dropLargest(): void {
  const dropped = kept.findLast((slabs) => slabs.length > 0)?.pop();
  keptBytes -= dropped?.length ?? 0;
}
