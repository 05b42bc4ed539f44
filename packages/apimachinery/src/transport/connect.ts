/** Connections through a custom dialer: a proxy or a tunnel. */
import { X509Certificate } from "node:crypto";
import type { Agent, AgentOptions } from "node:http";
import { isIP, Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  type ConnectionOptions,
  checkServerIdentity,
  type PeerCertificate,
  type TLSSocket,
  connect as tlsConnect,
} from "node:tls";
import { expiredOf, expiryText } from "../objects/errors/certificate-expiry.ts";

/** A socket or another duplex stream that acts as one. */
export interface Connection extends Duplex {
  /** Closes the stream after pending writes. */
  destroySoon(): void;
}

/** Dials a host. @returns an unused connection @throws Error when the connection fails */
export type Connect = (host: string, port: number) => Promise<Connection>;

/** Node supports an asynchronous `createConnection`, but its types do not. */
type LateConnection = (
  options: AgentOptions & { host: string; port: number },
  done: (err: Error | null, socket?: Duplex) => void,
) => void;

/** `certFile` is the origin of `cert`, for messages. */
type TlsClientOptions = Omit<ConnectionOptions, "socket"> & { socket?: Duplex; certFile?: string | undefined };

const missingSanText = "x509: certificate relies on legacy Common Name field, use SANs instead";

/** `serverIdentityFault` that also calls `missingSan` for each certificate that has the name as its common name only. */
export function watchedIdentity(missingSan: (() => void) | undefined): typeof serverIdentityFault {
  return (host, peer) => {
    const fault = serverIdentityFault(host, peer);
    if (fault?.message === missingSanText) missingSan?.();
    return fault;
  };
}

/**
 * Whether a certificate is the server's, as Go decides it and with Go's messages: only alternative names count, where Node
 * falls back to the common name. To be passed as `checkServerIdentity` wherever TLS is not opened by `connectTls`.
 * Source: Go 1.17 crypto/x509 VerifyHostname, HostnameError
 * @param host name or IP address that was dialled
 */
export function serverIdentityFault(host: string, peer: PeerCertificate): Error | undefined {
  const { subject, subjectaltname = "" } = peer;
  if (subjectaltname === "") {
    const isCommonName =
      String(subject?.CN).toLowerCase() === host.toLowerCase() || checkServerIdentity(host, peer) === undefined;
    if (isCommonName) return new Error(missingSanText);
  } else if (checkServerIdentity(host, { ...peer, subject: { ...subject, CN: "" } }) === undefined) return undefined;
  const isAddress = isIP(host) !== 0;
  const valid = namesOf(subjectaltname, isAddress ? "IP Address:" : "DNS:");
  if (valid !== "") return new Error(`x509: certificate is valid for ${valid}, not ${host}`);
  return new Error(
    isAddress
      ? `x509: cannot validate certificate for ${host} because it doesn't contain any IP SANs`
      : `x509: certificate is not valid for any names, but wanted to match ${host}`,
  );
}

function namesOf(alternatives: string, prefix: string): string {
  const names = alternatives.split(", ").filter((name) => name.startsWith(prefix));
  return names.map((name) => name.slice(prefix.length)).join(", ");
}

/**
 * Starts a TLS handshake, over `socket` if given; that socket is destroyed on failure. If verification fails because a
 * certificate is expired or not yet valid, the error message names the certificate.
 * @throws Error for invalid certificate options
 */
export function connectTls(options: TlsClientOptions): TLSSocket {
  try {
    const socket = tlsConnect({ checkServerIdentity: serverIdentityFault, ...options });
    nameExpired(socket, options);
    return socket;
  } catch (err) {
    options.socket?.destroy();
    throw err;
  }
}

const expiredCodes = new Set(["CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID"]);

function nameExpired(socket: TLSSocket, { cert, certFile }: TlsClientOptions): void {
  let peer: X509Certificate | undefined;
  // Runs before Node verifies the certificate: it is not available on a destroyed socket.
  socket.prependOnceListener("secure", () => {
    peer = socket.getPeerX509Certificate();
  });
  socket.prependListener("error", (err: NodeJS.ErrnoException) => {
    const { code = "" } = err;
    if (expiredCodes.has(code))
      err.message = `x509: ${expiredOf(peer, Date.now()) ?? "certificate has expired or is not yet valid"}`;
    else if (/^ERR_SSL_.*_ALERT_/.test(code)) {
      const own = ownExpiry(cert, certFile);
      if (own !== undefined) err.message = `${err.message.trim()}: our client ${own}`;
    }
  });
}

/** Describes a client certificate outside its validity period. @returns undefined when it is valid or unreadable */
export function ownExpiry(pem: ConnectionOptions["cert"], file: string | undefined, nowMs = Date.now()): string | undefined {
  if (typeof pem !== "string" && !Buffer.isBuffer(pem)) return undefined;
  try {
    return expiryText(new X509Certificate(pem), nowMs, file);
  } catch {
    return undefined; // reported where the certificate is used
  }
}

/**
 * Makes an agent dial through `connect`.
 * @param agent is modified
 * @param isSecure whether to negotiate TLS with the target host
 * @returns the same agent
 */
export function connectingOver<A extends Agent>(agent: A, connect: Connect, isSecure: boolean): A {
  const createConnection: LateConnection = (options, done) => {
    connect(options.host, Number(options.port))
      .then((socket) => (isSecure ? connectTls({ ...options, socket }) : socket))
      .then(
        (socket) => done(null, socket),
        (err: Error) => done(err),
      );
  };
  const { keepSocketAlive } = agent;
  return Object.assign(agent, {
    createConnection,
    // Streams that are not sockets have no idle timeout, so they serve one request only.
    keepSocketAlive: (socket: Duplex) => socket instanceof Socket && keepSocketAlive.call(agent, socket),
  });
}
