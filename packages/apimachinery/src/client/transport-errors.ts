/** True when no server listened: the request was certainly not executed. */
export function isConnectionRefused(err: unknown): boolean {
  return errorCodeOf(err) === "ECONNREFUSED";
}

/** True when the request may be sent again although it is not idempotent: the server says that it did not look at it. */
export function wasNotProcessed(err: unknown): boolean {
  return err instanceof NotProcessed;
}

/** The connection broke under the request; it may have been executed. */
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

export class ConnectionLost extends Error {
  readonly code = "CONNECTION_LOST";
}

/** The server certainly did not look at the request. */
export class NotProcessed extends Error {
  readonly code = "NOT_PROCESSED";
}

function errorCodeOf(err: unknown): string | undefined {
  for (let cause = err, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth++) {
    const { code } = cause as NodeJS.ErrnoException;
    if (typeof code === "string") return code;
  }
  return undefined;
}

/** No connection had a free stream for so long. */
export class StreamTimeout extends Error {
  readonly code = "STREAM_TIMEOUT";
}

export function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error("aborted", { cause: reason });
}
