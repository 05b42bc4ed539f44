/** A TLS server called by the API server in tests: real certificates, a free port, all requests recorded. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { asyncRequestListener } from "@coxswain/apimachinery/testing/async-listener";

export interface PeerRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly authorization: string | undefined;
  readonly userAgent: string | undefined;
  readonly body: string;
}

export interface PeerAnswer {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  /** Strings are sent as text, other values as JSON; undefined destroys the connection. */
  readonly body: unknown;
}

interface TlsPeer {
  readonly url: string;
  readonly ca: string;
  readonly caFile: string;
  readonly requests: PeerRequest[];
  /** Number of open connections; the server closes none by itself. */
  connections(): Promise<number>;
  /** Writes a kubeconfig for this server, as used by webhook flags; returns its path. */
  kubeconfig(path?: string): string;
  /** Writes a file to the same directory; returns its path. */
  file(name: string, text: string): string;
  close(): void;
}

let certificates: Promise<{ ca: string; cert: string; key: string }> | undefined;

/** @param answer computes the response to each request */
export async function startTlsPeer(
  t: { after(fn: () => void): void },
  answer: (request: PeerRequest, url: string) => PeerAnswer | Promise<PeerAnswer>,
): Promise<TlsPeer> {
  certificates ??= makeCertificates();
  const { ca, cert, key } = await certificates;
  const directory = mkdtempSync(join(tmpdir(), "cox-peer-"));
  const requests: PeerRequest[] = [];
  let url = "";
  const server = createServer(
    { cert, key },
    asyncRequestListener(async (incoming, outgoing) => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
      const request = {
        method: incoming.method ?? "",
        url: incoming.url ?? "",
        authorization: incoming.headers.authorization,
        userAgent: incoming.headers["user-agent"],
        body: Buffer.concat(chunks).toString("utf8"),
      };
      requests.push(request);
      const { status = 200, headers = {}, body } = await answer(request, url);
      if (body === undefined) return void incoming.socket.destroy();
      outgoing.writeHead(status, { "content-type": "application/json", ...headers });
      outgoing.end(typeof body === "string" ? body : JSON.stringify(body));
    }),
  );
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  const file = (name: string, text: string): string => {
    const path = join(directory, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  t.after(() => {
    close();
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    url,
    ca,
    caFile: file("ca.crt", ca),
    requests,
    connections: () =>
      new Promise((resolve, reject) => server.getConnections((err, count) => (err === null ? resolve(count) : reject(err)))),
    kubeconfig: (path = "") => file("webhook.kubeconfig", kubeconfigText(`${url}${path}`)),
    file,
    close,
  };
}

async function makeCertificates(): Promise<{ ca: string; cert: string; key: string }> {
  const ca = await newCa({ commonName: "peer-ca" });
  const pair = await newCertificate({ commonName: "peer", dnsNames: ["localhost"], ips: ["127.0.0.1"], usages: ["server"], ca });
  return { ca: ca.certPem, cert: pair.certPem, key: pair.keyPem };
}

function kubeconfigText(server: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "peer",
    clusters: [{ name: "peer", cluster: { server, "certificate-authority": "ca.crt" } }],
    users: [{ name: "apiserver", user: { token: "from-the-apiserver" } }],
    contexts: [{ name: "peer", context: { cluster: "peer", user: "apiserver" } }],
  });
}
