import { StatusError } from "./status-error.ts";

/** The reason of a StatusError, `""` for any other error. */
export function reasonOf(err: unknown): string {
  return err instanceof StatusError ? err.reason : "";
}

/** Matches by reason, or by code when the Status has no reason. */
const matcher =
  (reason: string, code: number) =>
  (err: unknown): boolean =>
    err instanceof StatusError && (err.reason === reason || (err.reason === "" && err.status.code === code));

const byReason =
  (reason: string) =>
  (err: unknown): boolean =>
    reasonOf(err) === reason;

export const isNotFound = matcher("NotFound", 404);
export const isAlreadyExists = byReason("AlreadyExists");
export const isConflict = matcher("Conflict", 409);
export const isInvalid = matcher("Invalid", 422);
export const isGone = matcher("Gone", 410);
export const isResourceExpired = byReason("Expired");
export const isForbidden = matcher("Forbidden", 403);
export const isTimeout = matcher("Timeout", 504);
export const isServerTimeout = byReason("ServerTimeout");
export const isBadRequest = matcher("BadRequest", 400);
export const isMethodNotSupported = matcher("MethodNotAllowed", 405);
export const isRequestEntityTooLarge = matcher("RequestEntityTooLarge", 413);
export const isInternalError = matcher("InternalError", 500);

/** True for a 429 with any reason, as in upstream's clients. */
export function isTooManyRequests(err: unknown): boolean {
  return err instanceof StatusError && (err.reason === "TooManyRequests" || err.status.code === 429);
}

/** @returns the delay in seconds before a retry that the server suggests; undefined when it suggests none */
export function suggestsDelay(err: unknown): number | undefined {
  if (!(err instanceof StatusError)) return undefined;
  const seconds = err.status.details?.retryAfterSeconds;
  const says =
    err.reason === "ServerTimeout" || err.reason === "TooManyRequests" || (err.reason === "Timeout" && seconds !== undefined);
  return says ? (seconds ?? 0) : undefined;
}

/** True when the Status has a cause with the given reason, e.g. `NamespaceTerminating`. */
export function hasCause(err: unknown, cause: string): boolean {
  return err instanceof StatusError && (err.status.details?.causes?.some((one) => one.reason === cause) ?? false);
}
