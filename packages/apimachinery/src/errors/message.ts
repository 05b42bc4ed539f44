/** What an error says; whatever else was thrown, as text. */
export function messageOf(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}

/** The same with what caused it, `cannot load it: not a map`. */
export function causesOf(err: unknown): string {
  const own = messageOf(err);
  return err instanceof Error && err.cause !== undefined ? `${own}: ${causesOf(err.cause)}` : own;
}
