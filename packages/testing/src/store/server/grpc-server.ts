import type { RequestListener } from "node:http";
import { createServer as createHttp2Server, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { duplexPair } from "node:stream";
import { createServer as createHttpServer } from "@coxswain/apimachinery/transport/node-http";

/** An error with its gRPC status code. Source: gRPC's status codes */
export class CallFailed extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export const statusCodes = { outOfRange: 11, unimplemented: 12, internal: 13 } as const;

/** Answers one message with one. @throws CallFailed */
export type UnaryCall = (message: Buffer) => Uint8Array;
/** Opens a bidirectional stream. @returns handlers for the client's messages and for the end of the stream */
export type StreamCall = (send: (message: Uint8Array) => void) => { message(message: Buffer): void; closed(): void };

interface GrpcMethods {
  /** By path: `/etcdserverpb.KV/Range`. */
  readonly unary: Readonly<Record<string, UnaryCall>>;
  readonly streams: Readonly<Record<string, StreamCall>>;
  /** Handles HTTP/1.1 requests on the same port. */
  readonly http1: RequestListener;
}

export interface GrpcServer {
  readonly port: number;
  close(): Promise<void>;
}

const longestMessage = 64 << 20;
const preface = Buffer.from("PRI * HTTP/2.0\r\n");

/** Serves gRPC and HTTP/1.1 without TLS on one port. @throws Error when it is in use */
export async function listenGrpc(methods: GrpcMethods, host: string, port: number): Promise<GrpcServer> {
  const http1 = createHttpServer(methods.http1);
  const http2 = createHttp2Server({ settings: { maxConcurrentStreams: 10_000 } });
  http2.on("stream", (stream, headers) => serve(stream as ServerHttp2Stream, String(headers[":path"]), methods));
  http2.on("sessionError", () => {});
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    socket.on("error", () => socket.destroy());
    socket.once("data", (first: Buffer) => {
      const isHttp2 = preface.subarray(0, first.length).equals(first.subarray(0, preface.length));
      // Node's HTTP servers read from the socket's handle, from which the first bytes have already been consumed.
      const [near, far] = duplexPair();
      near.on("error", () => socket.destroy());
      far.write(first);
      socket.pipe(far).pipe(socket);
      socket.once("close", () => near.destroy());
      near.once("close", () => socket.destroy());
      (isHttp2 ? http2 : http1).emit("connection", near);
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen({ host, port }, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

function serve(stream: ServerHttp2Stream, path: string, { unary, streams }: GrpcMethods): void {
  if (stream.destroyed) return; // the client has closed the stream before
  let [status, text] = [0, ""];
  stream.on("error", () => {});
  stream.on("wantTrailers", () =>
    stream.sendTrailers({ "grpc-status": String(status), "grpc-message": encodeURIComponent(text) }),
  );
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  const end = (code: number, message = ""): void => {
    [status, text] = [code, message];
    if (!stream.destroyed) stream.end();
  };
  const fail = (err: unknown): void => end(err instanceof CallFailed ? err.code : statusCodes.internal, (err as Error).message);
  const send = (message: Uint8Array): void => {
    if (!stream.destroyed && stream.writable) stream.write(framed(message));
  };
  const [call, open] = [unary[path], streams[path]];
  if (call !== undefined) {
    eachMessage(stream, (message) => {
      send(call(message));
      end(0);
    }).catch(fail);
  } else if (open !== undefined) {
    const opened = open(send);
    eachMessage(stream, (message) => opened.message(message))
      .then(() => end(0), fail)
      .finally(() => opened.closed());
  } else {
    stream.resume();
    end(statusCodes.unimplemented, `unknown method ${path}`);
  }
}

function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Calls `take` with each message until the client closes its side. @throws errors of `take` */
async function eachMessage(stream: ServerHttp2Stream, take: (message: Buffer) => void): Promise<void> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= 5) {
      const end = 5 + rest.readUInt32BE(1);
      if (end > longestMessage || rest[0] !== 0)
        throw new CallFailed(statusCodes.internal, "a message that is compressed or too long");
      if (rest.length < end) break;
      const message = Buffer.from(rest.subarray(5, end));
      rest = rest.subarray(end);
      take(message);
    }
  }
}
