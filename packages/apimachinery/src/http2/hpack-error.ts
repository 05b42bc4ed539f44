/** A block of header fields that has no meaning: the connection is over, as both sides' tables are no longer the same. */
export class HpackError extends Error {
  override readonly name = "HpackError";
}
