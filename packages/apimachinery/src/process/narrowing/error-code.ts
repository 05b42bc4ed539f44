/** The `code` of an error of Node or of the system, such as `ENOENT`; undefined for an error without one, and for any other value. */
export function errorCode(err: unknown): string | undefined {
  const hasCode = typeof err === "object" && err !== null && "code" in err;
  return hasCode && typeof err.code === "string" ? err.code : undefined;
}
