/**
 * WebSockets terminated by this server: watches and logs, which only send. Messages from the client are read and discarded.
 * The caller chooses between text and binary messages.
 * Source: golang.org/x/net/websocket (the handshake and its errors), k8s.io/apiserver pkg/util/wsstream
 */
import type { IncomingMessage } from "node:http";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { type WebSocket, WebSocketServer } from "ws";

interface WebSocketRules {
  /** Reject requests without an Origin header, which browsers always send, with 403. */
  readonly originRequired: boolean;
  /** Supported subprotocols, `""` for none; undefined: any single protocol that the client names. */
  readonly protocols?: readonly string[];
}

export interface WebSocketStream {
  /** `""` when the client requested none. */
  readonly protocol: string;
  /** @returns false when the transport's buffer is full: await `drained` before sending more */
  send(message: Buffer, as: "text" | "binary"): boolean;
  /** Resolves when everything sent was written; rejects when the client disconnected. */
  drained(): Promise<void>;
  close(): void;
  /** Terminates the connection without a close frame. */
  destroy(): void;
}

/** Buffered bytes from which `send` returns false. */
const highWaterBytes = 64 * 1024;
/** Clients are not expected to send data; a larger message ends the connection. */
const maxReceivedBytes = 64 * 1024;

const server = new WebSocketServer({
  noServer: true,
  perMessageDeflate: false,
  clientTracking: false,
  maxPayload: maxReceivedBytes,
  handleProtocols: (protocols) => protocols.values().next().value ?? false,
});

/** Whether the request is a WebSocket upgrade. Source: wsstream.IsWebSocketRequest */
export function isWebSocketRequest({ upgrade, headers }: Exchange): boolean {
  if (upgrade === undefined || headers.upgrade?.toLowerCase() !== "websocket") return false;
  return (headers.connection ?? "").split(",").some((one) => one.trim().toLowerCase() === "upgrade");
}

/** @returns undefined when the handshake was rejected; the response has been sent then */
export function acceptWebSocket(exchange: Exchange, rules: WebSocketRules): Promise<WebSocketStream | undefined> {
  const refused = refusal(exchange, rules);
  if (refused !== undefined) {
    exchange.respond(refused.code, refused.headers ?? {}, refused.text);
    return Promise.resolve(undefined);
  }
  const { socket, head } = exchange.upgrade!;
  const request = handshakeOf(exchange, agreedProtocol(exchange, rules));
  return new Promise((resolve) => {
    socket.once("close", () => resolve(undefined));
    server.handleUpgrade(request, socket, head, (webSocket) => resolve(streamOver(webSocket)));
  });
}

/** The request as `ws` reads it, with only the agreed subprotocol to choose from. */
function handshakeOf({ method, headers }: Exchange, protocol: string | undefined): IncomingMessage {
  const { "sec-websocket-protocol": _requested, ...others } = headers;
  const agreed = protocol ? { "sec-websocket-protocol": protocol } : {};
  // Cast: ws reads no more than the method and the headers.
  return { method, headers: { ...others, ...agreed } } as IncomingMessage;
}

interface Refusal {
  readonly code: number;
  readonly text: string;
  readonly headers?: Record<string, string>;
}

function refusal(exchange: Exchange, rules: WebSocketRules): Refusal | undefined {
  const { method, headers } = exchange;
  if (method !== "GET") return { code: 405, text: "bad method" };
  if (!/^[+/0-9A-Za-z]{22}==$/.test(headers["sec-websocket-key"] ?? ""))
    return { code: 400, text: "mismatch challenge/response" };
  if (headers["sec-websocket-version"] !== "13") {
    return { code: 400, text: "missing or bad WebSocket Version", headers: { "sec-websocket-version": "13" } };
  }
  if (rules.originRequired && !isUri(headers.origin)) return { code: 403, text: "" };
  const agreed = agreedProtocol(exchange, rules);
  if (agreed === undefined) return { code: rules.protocols === undefined ? 400 : 403, text: "" };
  return undefined;
}

function isUri(origin: string | undefined): boolean {
  return origin !== undefined && (origin.startsWith("/") || URL.canParse(origin));
}

/** @returns `""` for none, undefined when there is no common protocol */
function agreedProtocol({ headers }: Exchange, { protocols }: WebSocketRules): string | undefined {
  const text = (headers["sec-websocket-protocol"] ?? "").trim();
  const requests = text === "" ? [] : text.split(",").map((protocol) => protocol.trim());
  if (protocols !== undefined) return (requests.length === 0 ? [""] : requests).find((protocol) => protocols.includes(protocol));
  // A single protocol is accepted as it is; several are rejected, since the server has no preference.
  if (requests.length > 1 || (requests[0] !== undefined && !/^[\w!#$%&'*+.^`|~-]+$/.test(requests[0]))) return undefined;
  return requests[0] ?? "";
}

function streamOver(webSocket: WebSocket): WebSocketStream {
  let gone = false;
  let waiting = 0;
  const wake: (() => void)[] = [];
  const wakeAll = (): void => {
    for (const fire of wake.splice(0)) fire();
  };
  webSocket.on("error", () => webSocket.terminate());
  webSocket.on("message", () => {});
  webSocket.once("close", () => {
    gone = true;
    wakeAll();
  });
  return {
    protocol: webSocket.protocol,
    send(message, as) {
      waiting++;
      webSocket.send(message, { binary: as === "binary" }, (err) => {
        if (err) gone = true;
        if (--waiting === 0) wakeAll();
      });
      return webSocket.bufferedAmount < highWaterBytes;
    },
    async drained() {
      if (waiting > 0 && !gone) await new Promise<void>((resolve) => wake.push(resolve));
      if (gone) throw new Error("the client disconnected");
    },
    close: () => webSocket.close(1000),
    destroy: () => webSocket.terminate(),
  };
}
