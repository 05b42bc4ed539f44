import type { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { type Duplex, pipeline } from "node:stream";
import { request as httpRequest, STATUS_CODES } from "@coxswain/apimachinery/transport/node-http";
import { requestHeaders, responseHeaders } from "./headers.ts";
import type { IngressMetrics } from "./metrics.ts";
import { connectionOf, type Destination, refusalText } from "./proxy.ts";

interface UpgradeOptions {
  readonly destinationOf: (request: IncomingMessage) => Destination;
  readonly connectTimeoutMs: number;
  readonly responseTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly metrics: IngressMetrics;
}

/** Whether a request is a WebSocket handshake; other upgrades, such as to HTTP/2 without TLS, are answered as if not requested. */
export const asksForWebSocket = ({ headers }: IncomingMessage): boolean => /^websocket$/i.test(headers.upgrade ?? "");

/** Forwards a WebSocket handshake to an endpoint and connects both. The answer of an endpoint that refuses it is sent to the client. */
export function upgrade(options: UpgradeOptions, request: IncomingMessage, client: Duplex, head: Buffer): void {
  const { destinationOf, connectTimeoutMs, responseTimeoutMs, idleTimeoutMs, metrics } = options;
  client.on("error", () => client.destroy());
  let by = "ingress";
  let code = 499;
  client.once("close", () => metrics.requests.labels(String(code), by).inc());
  const refuse = (status: number, text: string): void => {
    code = status;
    const body = refusalText(status, text);
    const headers = { "content-type": "text/plain; charset=utf-8", "content-length": String(Buffer.byteLength(body)) };
    client.end(`${headOf(status, { ...headers, connection: "close" })}${body}`);
    // Read on, since the client's end comes behind what it has sent.
    client.resume();
    endWhenIdle(client, idleTimeoutMs, () => client.destroy());
  };
  const destination = destinationOf(request);
  if ("code" in destination) {
    refuse(destination.code, destination.text);
    return;
  }
  // A body before the switch of protocols would be read as the client's first frame.
  if (request.headers["content-length"] !== undefined || request.headers["transfer-encoding"] !== undefined) {
    refuse(400, "a request for a WebSocket has no body");
    return;
  }
  const { host, path, urls } = destination;
  const { hostname, port } = new URL(urls[0]!);
  const headers = {
    ...requestHeaders(request.headers, { ...connectionOf(request), host }),
    connection: "Upgrade",
    upgrade: "websocket",
  };
  const sent = httpRequest({ host: hostname.replace(/^\[|\]$/g, ""), port, method: "GET", path, headers, agent: false });
  const late = setTimeout(() => sent.destroy(new LateError()), connectTimeoutMs + responseTimeoutMs);
  const takeEarly = readEarly(client, head);
  sent.on("upgrade", (answer, backend: Duplex, backendHead: Buffer) => {
    clearTimeout(late);
    [by, code] = ["backend", 101];
    client.write(headOf(101, { ...responseHeaders(answer.headers), connection: "Upgrade", upgrade: "websocket" }));
    if (backendHead.length > 0) client.write(backendHead);
    for (const chunk of takeEarly()) backend.write(chunk);
    join(client, backend, idleTimeoutMs, metrics);
  });
  sent.on("response", (answer) => {
    clearTimeout(late);
    takeEarly();
    client.resume();
    [by, code] = ["backend", answer.statusCode ?? 502];
    // Without chunks: then the end of the connection is the end of the body.
    client.write(headOf(code, { ...responseHeaders(answer.headers), connection: "close" }));
    pipeline(answer, client, () => client.destroy());
  });
  sent.on("error", (err) => {
    clearTimeout(late);
    if (client.destroyed || by === "backend") return void client.destroy();
    takeEarly();
    if (err instanceof LateError) refuse(504, "the backend did not answer in time");
    else refuse(502, "the backend did not answer");
  });
  client.once("close", () => sent.destroy());
  sent.end();
}

class LateError extends Error {}

/** What a client may send before the endpoint has answered; the rest stays with the client. */
const mostEarlyBytes = 64 << 10;

/**
 * Reads on while the endpoint is asked, because the end of a client that has gone comes behind what it has sent.
 * @returns ends it, and gives what was read, which is for the endpoint
 */
function readEarly(client: Duplex, head: Buffer): () => readonly Buffer[] {
  const chunks = [head];
  let bytes = head.length;
  const keep = (chunk: Buffer): void => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= mostEarlyBytes) client.pause();
  };
  const gone = (): void => void client.destroy();
  client.on("data", keep).once("end", gone);
  return () => {
    client.off("data", keep).off("end", gone);
    return chunks;
  };
}

function join(client: Duplex, backend: Duplex, idleTimeoutMs: number, metrics: IngressMetrics): void {
  metrics.upgrades.inc();
  client.once("close", () => metrics.upgrades.dec());
  const end = (): void => {
    client.destroy();
    backend.destroy();
  };
  for (const socket of [client, backend]) {
    endWhenIdle(socket, idleTimeoutMs, end);
    socket.once("error", end);
    socket.once("close", end);
  }
  client.pipe(backend);
  backend.pipe(client);
}

function endWhenIdle(socket: Duplex, timeoutMs: number, end: () => void): void {
  if (socket instanceof Socket) socket.setTimeout(timeoutMs, end);
}

/** Values were parsed by node's strict parser, which leaves no line breaks in them. */
function headOf(code: number, headers: Readonly<Record<string, string | readonly string[]>>): string {
  const lines = Object.entries(headers).flatMap(([name, value]) => [value].flat().map((one) => `${name}: ${one}\r\n`));
  return `HTTP/1.1 ${code} ${STATUS_CODES[code] ?? ""}\r\n${lines.join("")}\r\n`;
}
