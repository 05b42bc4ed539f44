/** True when the connection was refused, so the request was not executed. */
export function isConnectionRefused(err: unknown): boolean {
  return errorCodeOf(err) === "ECONNREFUSED";
}

/** True when even a non-idempotent request may be retried: the server states that it was not processed. */
export function wasNotProcessed(err: unknown): boolean {
  return err instanceof NotProcessed;
}

/** True when the connection broke during the request, which may have been executed. */
export function isConnectionLost(err: unknown): boolean {
  const code = errorCodeOf(err);
  return code !== undefined && lostCodes.has(code);
}

const lostCodes = new Set([
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ERR_HTTP2_SESSION_ERROR",
  "ERR_HTTP2_INVALID_SESSION",
  "ERR_HTTP2_GOAWAY_SESSION",
  "ERR_HTTP2_STREAM_CANCEL",
  "ERR_STREAM_PREMATURE_CLOSE",
  "UND_ERR_SOCKET",
  "CONNECTION_LOST",
]);

/** The connection was lost during a request. */
export class ConnectionLost extends Error {
  readonly code = "CONNECTION_LOST";
}

/** The request was not processed by the server. */
export class NotProcessed extends Error {
  readonly code = "NOT_PROCESSED";
}

function errorCodeOf(err: unknown): string | undefined {
  for (let cause = err, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth++) {
    const { code }: NodeJS.ErrnoException = cause;
    if (typeof code === "string") return code;
  }
  return undefined;
}

/** No connection had a free stream within the time limit. */
export class StreamTimeout extends Error {
  readonly code = "STREAM_TIMEOUT";
}

/** Wraps an abort reason that is not an Error. */
export function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error("aborted", { cause: reason });
}
