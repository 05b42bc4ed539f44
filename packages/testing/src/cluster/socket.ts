import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { type HttpServer, startHttpServer } from "@coxswain/apimachinery/serving/https-server";
import type { InProcessListener } from "./listener.ts";

export interface SocketOptions {
  /** Default: any free port. */
  readonly port?: number;
  /** Default: 127.0.0.1. */
  readonly host?: string;
}

/** A listening port of an in-process server, with its CA. */
export interface Socket {
  readonly url: string;
  /** CA certificate in PEM. */
  readonly ca: string;
  close(): Promise<void>;
}

/** @throws Error when the port is in use */
export async function openSocket(
  { port = 0, host = "127.0.0.1" }: SocketOptions,
  listener: InProcessListener,
  log: Logger,
): Promise<Socket> {
  // Imported on demand: the certificate library takes long to load, and most clusters do not need it.
  const { newCa, newCertificate } = await import("@coxswain/apimachinery/serving/certificates");
  const ca = await newCa({ commonName: "coxswain-testing-ca" });
  const dnsNames = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
  const ips = [...new Set(["127.0.0.1", "10.0.0.1", ...(/^[0-9.]+$/.test(host) ? [host] : [])])];
  const pair = await newCertificate({ commonName: "kube-apiserver", dnsNames, ips, usages: ["server"], ca });
  const server: HttpServer = await startHttpServer({
    port,
    bindAddress: host,
    tls: { cert: pair.certPem, key: pair.keyPem },
    handler: (exchange) => listener.handle(exchange),
    turns: new Turns(),
    log,
  });
  return {
    url: `https://${host === "0.0.0.0" ? "127.0.0.1" : host}:${server.port}`,
    ca: ca.certPem,
    close: () => server.close(0),
  };
}
