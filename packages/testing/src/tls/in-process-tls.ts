import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { createSecureContext, type SecureContext, TLSSocket } from "node:tls";

/** Answers requests; a thrown or rejected error destroys the connection. */
export type WebListener = (request: IncomingMessage, response: ServerResponse) => unknown;

interface Identity {
  readonly context: SecureContext;
  /** PEM of the CA that signed the certificate. */
  readonly ca: string;
}

/** HTTPS over in-process connections: TLS in front of an HTTP server that does not listen. */
export class InProcessTls {
  readonly #server: Server;
  readonly #dnsNames: readonly string[];
  #identity: Promise<Identity> | undefined;

  /** @param dnsNames names in the certificate, which is created when first needed */
  constructor(server: Server, dnsNames: readonly string[] = []) {
    this.#server = server;
    this.#dnsNames = dnsNames;
  }

  /** PEM of the CA, to be trusted by clients. */
  async ca(): Promise<string> {
    return (await this.#known()).ca;
  }

  /** Accepts a connection, which begins with TLS. */
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

/** Runs in this thread, because work in another one would be outside of virtual time. */
async function newIdentity(dnsNames: readonly string[]): Promise<Identity> {
  // Imported on demand: the certificate library takes long to load, and few clusters need it.
  const { newCa, newCertificate } = await import("@coxswain/apimachinery/serving/certificates");
  const ca = await newCa({ commonName: "coxswain-testing-ca" });
  const commonName = dnsNames[0] ?? "fake-node";
  const { certPem, keyPem } = await newCertificate({ commonName, dnsNames, usages: ["server"], ca });
  return { context: createSecureContext({ cert: certPem, key: keyPem }), ca: ca.certPem };
}
