/**
 * Copies the first `length` bytes of the queued pieces to `slab` at `at`.
 * @param pieces holds at least `length` bytes; consumed pieces are removed
 */
export function takePieces(pieces: Buffer[], slab: Buffer, at: number, length: number): void {
  let done = 0;
  let whole = 0;
  while (done < length) {
    const piece = pieces[whole] as Buffer;
    const taken = Math.min(piece.length, length - done);
    piece.copy(slab, at + done, 0, taken);
    done += taken;
    if (taken < piece.length) pieces[whole] = piece.subarray(taken);
    else whole++;
  }
  if (whole === pieces.length) pieces.length = 0;
  else if (whole > 0) pieces.splice(0, whole);
}
