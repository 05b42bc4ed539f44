import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { createSecureContext, type SecureContext, TLSSocket } from "node:tls";

/** Answers requests; what it throws or rejects with breaks the connection. */
export type WebListener = (request: IncomingMessage, response: ServerResponse) => unknown;

interface Identity {
  readonly context: SecureContext;
  /** PEM, of who signed the certificate. */
  readonly ca: string;
}

/** HTTPS over connections of this process: TLS in front of an HTTP server that does not listen. */
export class InProcessTls {
  readonly #server: Server;
  readonly #dnsNames: readonly string[];
  #identity: Promise<Identity> | undefined;

  /** @param dnsNames of the certificate, which is made when it is needed */
  constructor(server: Server, dnsNames: readonly string[] = []) {
    this.#server = server;
    this.#dnsNames = dnsNames;
  }

  /** PEM, which clients trust. */
  async ca(): Promise<string> {
    return (await this.#known()).ca;
  }

  /** Takes a connection, which begins with TLS. */
  readonly accept = (connection: Duplex): void => {
    connection.on("error", () => connection.destroy());
    this.#known().then(
      ({ context }) => {
        const socket = new TLSSocket(connection, { isServer: true, secureContext: context });
        socket.on("error", () => socket.destroy());
        this.#server.emit("connection", socket);
      },
      (err) => connection.destroy(err as Error),
    );
  };

  #known(): Promise<Identity> {
    this.#identity ??= newIdentity(this.#dnsNames);
    return this.#identity;
  }
}

/** Made in this thread: another one would be outside of virtual time. */
async function newIdentity(dnsNames: readonly string[]): Promise<Identity> {
  // The certificate library takes long to load, and few clusters need it.
  const { newCa, newCertificate } = await import("@coxswain/apimachinery/serving/certificates");
  const ca = await newCa({ commonName: "coxswain-testing-ca" });
  const commonName = dnsNames[0] ?? "fake-node";
  const { certPem, keyPem } = await newCertificate({ commonName, dnsNames, usages: ["server"], ca });
  return { context: createSecureContext({ cert: certPem, key: keyPem }), ca: ca.certPem };
}
