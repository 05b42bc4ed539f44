/**
 * Connection errors with the texts of Go's net and crypto packages, because users search for these messages.
 */
interface SocketError extends Error {
  readonly code?: string;
  readonly syscall?: string;
  readonly address?: string;
  readonly port?: number;
  readonly hostname?: string;
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connect: connection refused",
  EHOSTUNREACH: "connect: no route to host",
  ENETUNREACH: "connect: network is unreachable",
  ETIMEDOUT: "connect: connection timed out",
};

/** Reasons for unix sockets, which have a path instead of a port. */
const unixReasons: Readonly<Record<string, string>> = {
  ENOENT: "connect: no such file or directory",
  ECONNREFUSED: "connect: connection refused",
  EACCES: "connect: permission denied",
};

const certificateFaults: Readonly<Record<string, string>> = {
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "certificate signed by unknown authority",
  SELF_SIGNED_CERT_IN_CHAIN: "certificate signed by unknown authority",
  DEPTH_ZERO_SELF_SIGNED_CERT: "certificate signed by unknown authority",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "certificate signed by unknown authority",
  CERT_HAS_EXPIRED: "certificate has expired or is not yet valid",
  CERT_NOT_YET_VALID: "certificate has expired or is not yet valid",
};

/**
 * @param err error of a socket, or of a request over one
 * @returns e.g. `dial tcp 10.0.0.7:443: connect: connection refused`, `x509: certificate signed by unknown authority`,
 *   `EOF`; the error's own message when no Go text is known
 */
export function dialErrorText(err: unknown): string {
  if (err instanceof AggregateError && err.errors.length > 0) return dialErrorText(err.errors[0]);
  // Cast: errors of sockets have these fields, others have none of them.
  const { code = "", address = "", port, syscall, hostname, message } = err as SocketError;
  const unixReason = syscall === "connect" && port === undefined ? unixReasons[code] : undefined;
  if (unixReason !== undefined) return `dial unix ${address}: ${unixReason}`;
  const reason = reasons[code];
  if (reason !== undefined) return `dial tcp ${address.includes(":") ? `[${address}]` : address}:${port}: ${reason}`;
  if (code === "ENOTFOUND") return `dial tcp: lookup ${hostname}: no such host`;
  if (code === "ECONNRESET") return "EOF";
  if (message.startsWith("x509: certificate has expired")) return message; // already has the time and the subject, see expiryText
  const fault = certificateFaults[code];
  return fault === undefined ? message : `x509: ${fault}`;
}
