/** Message of an error; any other thrown value as a string. */
export function messageOf(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}

/** Message with the messages of all causes, e.g. `cannot load it: not a map`. */
export function causesOf(err: unknown): string {
  const own = messageOf(err);
  return err instanceof Error && err.cause !== undefined ? `${own}: ${causesOf(err.cause)}` : own;
}
