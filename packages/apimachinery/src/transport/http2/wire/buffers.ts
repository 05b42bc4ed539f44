const smallBytes = 1024;
const roomBytes = 4096;

/**
 * Accumulates received chunks in about as much memory as they have bytes. Clients choose the size of chunks: a Buffer for
 * each of a million one-byte chunks would take 200 times as much.
 */
export class GatheredBytes {
  #parts: Buffer[] = [];
  #size = 0;
  /** Buffer into which small chunks are copied. */
  #room = Buffer.alloc(0);
  #used = 0;

  get size(): number {
    return this.#size;
  }

  /** @param piece kept by reference when it is the first or has at least 1024 bytes; copied otherwise */
  push(piece: Buffer): void {
    const isFirst = this.#size === 0;
    this.#size += piece.length;
    if (isFirst || piece.length >= smallBytes) {
      this.#seal();
      this.#parts.push(piece);
      return;
    }
    if (piece.length > this.#room.length - this.#used) {
      this.#seal();
      this.#room = Buffer.allocUnsafeSlow(roomBytes);
    }
    this.#used += piece.copy(this.#room, this.#used);
  }

  /** Returns everything accumulated so far and leaves the object empty. */
  take(): Buffer {
    this.#seal();
    const all = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts, this.#size);
    this.#parts = [];
    this.#size = 0;
    return all;
  }

  #seal(): void {
    if (this.#used === 0) return;
    this.#parts.push(this.#room.subarray(0, this.#used));
    this.#room = this.#room.subarray(this.#used);
    this.#used = 0;
  }
}

/**
 * Copies the first `length` bytes of the queued pieces to `slab` at `at`.
 * @param pieces holds at least `length` bytes; consumed pieces are removed
 */
export function takePieces(pieces: Buffer[], slab: Buffer, at: number, length: number): void {
  let done = 0;
  let whole = 0;
  while (done < length) {
    const piece = pieces[whole]!;
    const taken = Math.min(piece.length, length - done);
    piece.copy(slab, at + done, 0, taken);
    done += taken;
    if (taken < piece.length) pieces[whole] = piece.subarray(taken);
    else whole++;
  }
  if (whole === pieces.length) pieces.length = 0;
  else if (whole > 0) pieces.splice(0, whole);
}

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

/** Free slabs, indexed by size / stepBytes. A pure cache: a slab's old contents are never read. */
const kept: Buffer[][] = Array.from({ length: largestSlabBytes / stepBytes + 1 }, () => []);
let keptBytes = 0;

/** Size of the free slabs, for the memory budget. */
export const slabMemory = {
  get bytes(): number {
    return keptBytes;
  },
  limitBytes: mostKeptBytes,
};

/** @returns a buffer of at least `bytes` bytes, uninitialised */
export function takeSlab(bytes: number): Buffer {
  if (bytes > largestSlabBytes) return Buffer.allocUnsafeSlow(bytes);
  const steps = Math.max(1, Math.ceil(bytes / stepBytes));
  const slab = kept[steps]!.pop();
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

/** Flow-control window of received data, of a stream or of the connection. Source: RFC 9113, section 5.2 */
export class ReceiveWindow {
  readonly #bytes: number;
  #left: number;
  /** Consumed bytes that were not yet returned by a WINDOW_UPDATE. */
  #workedOff = 0;

  constructor(bytes: number) {
    this.#bytes = bytes;
    this.#left = bytes;
  }

  /** Accounts received data. @returns false when it exceeds the window */
  take(bytes: number): boolean {
    this.#left -= bytes;
    return this.#left >= 0;
  }

  /**
   * @param bytes consumed by the application
   * @returns the increment to send as WINDOW_UPDATE; 0 until more than half of the window was consumed
   */
  giveBack(bytes: number): number {
    this.#workedOff += bytes;
    if (this.#workedOff <= this.#bytes / 2) return 0;
    const grown = this.#workedOff;
    this.#left += grown;
    this.#workedOff = 0;
    return grown;
  }
}
