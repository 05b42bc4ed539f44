/** A malformed header block. The connection is unusable afterwards, because the tables of both sides may differ. */
export class HpackError extends Error {
  override readonly name = "HpackError";
}
