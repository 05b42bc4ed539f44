/** An admission webhook for tests: a real HTTPS server with configurable responses by path. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";

// biome-ignore lint/suspicious/noExplicitAny: reviews hold objects of every kind.
export type ReviewRequest = any;

interface CalledWebhook {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly version: string;
  readonly request: ReviewRequest;
}

export interface HookServer {
  readonly port: number;
  readonly url: string;
  readonly caBundle: string;
  /** By path: the review response without uid; undefined sends a 500. */
  readonly answers: Map<string, (request: ReviewRequest) => object | undefined>;
  /** By path: writes a response that is not a review. */
  readonly raw: Map<string, (response: ServerResponse, request: ReviewRequest) => void>;
  readonly requested: CalledWebhook[];
  stop(): void;
}

/** @param dnsNames names of its certificate besides `localhost` and 127.0.0.1 */
export async function startHookServer(dnsNames: readonly string[] = []): Promise<HookServer> {
  const ca = await newCa({ commonName: "hooks" });
  const pair = await newCertificate({
    commonName: "hook",
    dnsNames: ["localhost", ...dnsNames],
    ips: ["127.0.0.1"],
    usages: ["server"],
    ca,
  });
  const answers: HookServer["answers"] = new Map();
  const raw: HookServer["raw"] = new Map();
  const requested: CalledWebhook[] = [];
  const server = createServer(
    { cert: pair.certPem, key: pair.keyPem, requestCert: true, rejectUnauthorized: false },
    (incoming, response) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.once("end", () => {
        const path = (incoming.url ?? "").split("?")[0] as string;
        const text = Buffer.concat(chunks).toString("utf8");
        const review = text === "" ? {} : JSON.parse(text);
        requested.push({ path, headers: incoming.headers, version: review.apiVersion, request: review.request });
        const own = raw.get(path);
        if (own !== undefined) return own(response, review.request);
        const answer = answers.get(path)?.(review.request);
        if (answer === undefined) return void response.writeHead(500).end("no");
        const body = { kind: "AdmissionReview", apiVersion: review.apiVersion, response: { uid: review.request.uid, ...answer } };
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify(body));
      });
    },
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `https://127.0.0.1:${port}`,
    caBundle: Buffer.from(ca.certPem).toString("base64"),
    answers,
    raw,
    requested,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A mutating webhook's yes with a patch. */
export function patchOf(operations: readonly object[]): object {
  const patch = Buffer.from(JSON.stringify(operations)).toString("base64");
  return { allowed: true, patchType: "JSONPatch", patch };
}
