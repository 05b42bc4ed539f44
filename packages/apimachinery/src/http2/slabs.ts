/**
 * Memory for what is written to sockets, used again when it is written: a new Buffer for each write would be most of the
 * garbage of a server that sends events, and V8 collects its whole heap when that much comes from outside of it.
 */

const sizes = [16, 64, 128, 256].map((kib) => kib * 1024);
/** Of each size; what many connections needed at once beyond that is left to the collector. */
const mostKeptBytes = 4 * 1024 * 1024;

const kept: Buffer[][] = sizes.map(() => []);

/** The largest that {@link takeSlab} keeps. */
export const largestSlabBytes = sizes[sizes.length - 1] as number;

/** @returns with room for so many bytes */
export function takeSlab(bytes: number): Buffer {
  const index = sizes.findIndex((size) => size >= bytes);
  return index === -1 ? Buffer.allocUnsafeSlow(bytes) : (kept[index]?.pop() ?? Buffer.allocUnsafeSlow(sizes[index] as number));
}

/** @param slab of {@link takeSlab}; nobody may hold a part of it any more */
export function giveSlabBack(slab: Buffer): void {
  const index = sizes.indexOf(slab.length);
  const slabs = kept[index];
  if (slabs !== undefined && slabs.length * slab.length < mostKeptBytes) slabs.push(slab);
}
