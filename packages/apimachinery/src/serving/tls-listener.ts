/** A TLS listener that selects the certificate for each client and reloads changed files. */

import { createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type SecureContextOptions, type TLSSocket, type Server as TlsServer } from "node:tls";
import { type Clock, realClock } from "../process/clock/clock.ts";
import type { Logger } from "../process/logging/logger.ts";
import { errorOf } from "../process/narrowing/error-of.ts";
import { newExpiryLog } from "./expired-certificates.ts";
import { asksForCertificates, loadTls, type TlsOptions } from "./tls-options.ts";
import { UnfinishedHandshakes } from "./unfinished-handshakes.ts";

interface TlsListenerOptions {
  readonly tls: TlsOptions;
  readonly alpnProtocols: string[];
  readonly handshakeTimeoutMs: number;
  /** For each client address; the oldest is closed when there is one more. Default 2,000. */
  readonly mostUnfinishedHandshakes?: number | undefined;
  readonly log: Logger;
  readonly clock?: Clock;
  /** Called before the handshake. */
  onConnection(socket: Socket): void;
  onSecure(socket: TLSSocket): void;
  /** Has to destroy the socket: Node does not close it after a handshake timeout. */
  onHandshakeError(err: NodeJS.ErrnoException, socket: TLSSocket): void;
}

export interface TlsListener {
  /** Not listening yet. */
  readonly server: Server;
  /** Reloads all files. @throws Error when they are invalid; the old ones stay */
  reload(): void;
}

/**
 * Creates a listener, which does not listen yet. It presents the certificate for the client's server name (SNI); without SNI the
 * one for the local address; otherwise the default one.
 * Source: k8s.io/apiserver pkg/server/dynamiccertificates/tlsconfig.go GetConfigForClient
 */
export function newTlsListener(options: TlsListenerOptions): TlsListener {
  const { tls, onConnection, log, clock = realClock } = options;
  let loaded = loadTls(tls);
  const expiry = newExpiryLog(() => loaded.certificates, log, clock);
  const unfinished = new UnfinishedHandshakes(options.mostUnfinishedHandshakes);
  const watched = {
    ...options,
    onSecure(socket: TLSSocket) {
      unfinished.finished(socket);
      options.onSecure(socket);
    },
    onHandshakeError(err: NodeJS.ErrnoException, socket: TLSSocket) {
      expiry.look();
      options.onHandshakeError(err, socket);
    },
  };
  const contextFor = (name: string) => loaded.contextFor(name);
  const main = newTlsServer(loaded.context, contextFor, watched);
  // Without SNI a TLS server always presents its default certificate, so each address with a certificate has its own server.
  const byAddress = new Map<string, TlsServer>();
  for (const [address, context] of loaded.byAddress) byAddress.set(address, newTlsServer(context, contextFor, watched));
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: 180_000 }, (socket) => {
    onConnection(socket);
    unfinished.add(socket);
    const own = byAddress.size === 0 ? undefined : byAddress.get(localAddressOf(socket));
    (own ?? main).emit("connection", socket);
  });
  server.once("close", () => expiry.close());
  return {
    server,
    reload() {
      loaded = loadTls(tls);
      expiry.look();
      main.setSecureContext(loaded.context);
      for (const [address, context] of loaded.byAddress) byAddress.get(address)?.setSecureContext(context);
    },
  };
}

function newTlsServer(
  context: SecureContextOptions,
  contextFor: ReturnType<typeof loadTls>["contextFor"],
  { tls, alpnProtocols, handshakeTimeoutMs, onSecure, onHandshakeError }: TlsListenerOptions,
): TlsServer {
  const server = createTlsServer({
    ...context,
    ALPNProtocols: alpnProtocols,
    // The authenticator verifies certificates; `authorized` reports whether OpenSSL accepts the chain.
    requestCert: asksForCertificates(tls),
    rejectUnauthorized: false,
    handshakeTimeout: handshakeTimeoutMs,
    SNICallback: (name, answer) => {
      try {
        answer(null, contextFor(name));
      } catch (err) {
        answer(errorOf(err));
      }
    },
  });
  server.on("secureConnection", onSecure);
  server.on("tlsClientError", onHandshakeError);
  return server;
}

/** Maps IPv4-mapped addresses of a dual-stack socket to IPv4. */
function localAddressOf(socket: Socket): string {
  return (socket.localAddress ?? "").replace(/^::ffff:(?=[0-9.]+$)/, "");
}
