/** Servers that are reached over somebody else: a proxy, a tunnel. */
import { X509Certificate } from "node:crypto";
import type { Agent, AgentOptions } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from "node:tls";
import { expiredOf, expiryText } from "../errors/certificate-expiry.ts";

/** A socket, or what stands for one. */
export interface Connection extends Duplex {
  /** Closes it when all is written. */
  destroySoon(): void;
}

/** @returns a connection to a host, on which nothing was said yet @throws Error of the way there */
export type Connect = (host: string, port: number) => Promise<Connection>;

/** Node lets `createConnection` answer later; its types do not say so. */
type LateConnection = (
  options: AgentOptions & { host: string; port: number },
  done: (err: Error | null, socket?: Duplex) => void,
) => void;

/** `certFile` is where `cert` is from, for messages. */
type TlsClientOptions = Omit<ConnectionOptions, "socket"> & { socket?: Duplex; certFile?: string | undefined };

/**
 * Begins TLS, over a connection if there is one. It ends when that is not possible: nobody else would end it. When it fails because a
 * certificate has expired, the message of its error names that certificate.
 * @throws Error for certificates that are none
 */
export function connectTls(options: TlsClientOptions): TLSSocket {
  try {
    const socket = tlsConnect(options);
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
  // Before Node verifies the certificate: a socket that was destroyed for it does not have it any more.
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

/** What is wrong with the time of a client's own certificate. */
export function ownExpiry(pem: ConnectionOptions["cert"], file: string | undefined, nowMs = Date.now()): string | undefined {
  if (typeof pem !== "string" && !Buffer.isBuffer(pem)) return undefined;
  try {
    return expiryText(new X509Certificate(pem), nowMs, file);
  } catch {
    return undefined; // whoever uses it says what is wrong with it
  }
}

/**
 * @param agent whose connections go over `connect` from now on
 * @param isSecure whether it speaks TLS, with the host at the far end
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
    // What only stands for a socket has no idle time that could be bounded: it serves one request.
    keepSocketAlive: (socket: Duplex) => socket instanceof Socket && keepSocketAlive.call(agent, socket),
  });
}
