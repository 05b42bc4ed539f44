import type { IncomingMessage } from "node:http";
import { type Duplex, PassThrough, type Readable } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { SpdyConnection, type SpdyStream, untilDrained } from "./spdy.ts";

/**
 * The streams of a command between a client and a kubelet, over SPDY (kubectl) or a WebSocket (client libraries).
 * Source: pkg/kubelet/cri/streaming/remotecommand (names of the protocols, numbers of the channels)
 */
export interface CommandStreams {
  readonly stdin: Readable;
  readonly terminal: Terminal;
  /** @returns resolves when more may be written (backpressure) */
  write(to: "stdout" | "stderr", chunk: Uint8Array): Promise<void>;
  /** Sends the command's result, and closes the streams. @param message for clients that do not read a Status */
  finish(status: object, message: string): Promise<void>;
}

interface TerminalSize {
  readonly width: number;
  readonly height: number;
}

/** The size of the client's terminal, which may arrive before anything listens. */
export class Terminal {
  #size: TerminalSize | undefined;
  #listener: ((size: TerminalSize) => void) | undefined;

  /** Calls the listener with the last size, if there is one, and with each later one. */
  listen(listener: (size: TerminalSize) => void): void {
    this.#listener = listener;
    if (this.#size !== undefined) listener(this.#size);
  }

  /** @param message the client's JSON; an invalid one is ignored */
  resize(message: Buffer): void {
    let size: { Width?: unknown; Height?: unknown } | null;
    try {
      size = JSON.parse(message.toString());
    } catch {
      return;
    }
    this.#size = { width: Number(size?.Width), height: Number(size?.Height) };
    this.#listener?.(this.#size);
  }
}

/** Streams that the client requested. */
interface RequestedStreams {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

const spdyProtocols = ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
const webSocketProtocols = ["v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io"];
const channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4 } as const;
const longestMessage = 1 << 20;

/** Accepts the upgrade. @returns undefined when it was refused; the response has been sent then */
export async function acceptStreams(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  requested: RequestedStreams,
): Promise<CommandStreams | undefined> {
  const upgrade = request.headers.upgrade?.toLowerCase();
  if (upgrade === "websocket") return overWebSocket(request, socket, head);
  if (upgrade === "spdy/3.1") return overSpdy(request, socket, head, requested);
  refuse(socket, 400, `unable to upgrade to ${JSON.stringify(upgrade ?? "")}`);
  return undefined;
}

/** Answers an upgrade request with a plain-text error, and closes the connection. */
export function refuse(socket: Duplex, code: number, text: string): void {
  const head = `HTTP/1.1 ${code} Refused\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(text)}`;
  socket.end(`${head}\r\nConnection: close\r\n\r\n${text}`);
}

async function overSpdy(
  { headers }: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  requested: RequestedStreams,
): Promise<CommandStreams | undefined> {
  const offered = [headers["x-stream-protocol-version"] ?? []].flat().flatMap((text) => text.split(",").map((one) => one.trim()));
  const protocol = offered.length === 0 ? "" : spdyProtocols.find((one) => offered.includes(one));
  if (protocol === undefined) {
    refuse(
      socket,
      403,
      `unable to negotiate protocol: client supports [${offered.join(" ")}], server accepts [${spdyProtocols.join(" ")}]`,
    );
    return undefined;
  }
  const named = protocol === "" ? "" : `X-Stream-Protocol-Version: ${protocol}\r\n`;
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n${named}\r\n`);
  if (head.length > 0) socket.unshift(head);
  const isNew = /^v[34]/.test(protocol);
  const wanted = ["error", ...(["stdin", "stdout", "stderr"] as const).filter((name) => requested[name])];
  if (requested.tty && isNew) wanted.push("resize");
  const streams = new Map<string, SpdyStream>();
  const connection = new SpdyConnection(socket);
  const isComplete = await new Promise<boolean>((resolve) => {
    const opened = (stream: SpdyStream): void => {
      streams.set(stream.headers.get("streamtype") ?? "", stream);
      if (wanted.every((name) => streams.has(name))) resolve(true);
    };
    connection.serve(opened).then(
      () => resolve(false),
      () => {
        socket.destroy();
        resolve(false);
      },
    );
  });
  if (!isComplete) return undefined;
  const accepted: CommandStreams = {
    stdin: streams.get("stdin")?.input ?? new PassThrough().end(),
    terminal: new Terminal(),
    write: async (to, chunk) => streams.get(to)?.write(chunk),
    async finish(status, message) {
      await streams.get("error")?.write(Buffer.from(protocol.startsWith("v4") ? JSON.stringify(status) : message));
      for (const stream of streams.values()) await stream.end();
      socket.end();
    },
  };
  const resizes = streams.get("resize")?.input;
  resizes?.on("data", (chunk: Buffer) => accepted.terminal.resize(chunk));
  return accepted;
}

const webSockets = new WebSocketServer({
  noServer: true,
  perMessageDeflate: false,
  clientTracking: false,
  maxPayload: longestMessage,
  handleProtocols: (protocols) => webSocketProtocols.find((one) => protocols.has(one)) ?? false,
});

function overWebSocket(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<CommandStreams | undefined> {
  return new Promise((resolve) => {
    socket.once("close", () => resolve(undefined));
    webSockets.handleUpgrade(request, socket, head, (webSocket) => resolve(overChannels(webSocket, socket)));
  });
}

function overChannels(webSocket: WebSocket, socket: Duplex): CommandStreams {
  const stdin = new PassThrough();
  const isText = webSocket.protocol.includes("base64");
  const send = async (channel: number, chunk: Uint8Array): Promise<void> => {
    if (webSocket.readyState !== webSocket.OPEN) return;
    const bytes = Buffer.from(chunk);
    webSocket.send(isText ? `${channel}${bytes.toString("base64")}` : Buffer.concat([Buffer.from([channel]), bytes]));
    if (socket.writableNeedDrain) await untilDrained(socket);
  };
  const accepted: CommandStreams = {
    stdin,
    terminal: new Terminal(),
    write: (to, chunk) => send(channels[to], chunk),
    async finish(status, message) {
      const text = webSocket.protocol.startsWith("v4") ? JSON.stringify(status) : message;
      if (text !== "") await send(channels.error, Buffer.from(text));
      webSocket.close(1000);
    },
  };
  webSocket.on("error", () => webSocket.terminate());
  webSocket.on("close", () => stdin.end());
  webSocket.on("message", (message: Buffer) => {
    const channel = isText ? Number(message.toString("latin1", 0, 1)) : message[0];
    const rest = message.subarray(1);
    const bytes = isText ? Buffer.from(rest.toString("latin1"), "base64") : rest;
    if (channel === channels.resize) accepted.terminal.resize(bytes);
    else if (channel === channels.stdin && bytes.length > 0 && !stdin.writableEnded && !stdin.write(bytes)) {
      webSocket.pause();
      stdin.once("drain", () => webSocket.resume());
    }
  });
  return accepted;
}
