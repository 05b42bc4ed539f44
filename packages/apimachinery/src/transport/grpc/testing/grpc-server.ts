import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type Settings,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { framedMessage } from "../call.ts";

/** A server of node:http2, for tests of gRPC's clients. */
interface TestServer {
  readonly port: number;
  readonly sessions: Set<ServerHttp2Session>;
  stop(): Promise<void>;
}

type OnCall = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, request: Buffer) => void;

/**
 * @param onCall called when the client has ended its request, unless the path begins with `/stream`: at once then
 * @param path of a unix socket
 */
export async function startGrpcServer(
  t: { after(fn: () => Promise<void>): void },
  onCall: OnCall,
  { path, settings = {} }: { path?: string; settings?: Settings } = {},
): Promise<TestServer> {
  const server = createServer({ settings });
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => {
    sessions.add(session.on("error", () => {}));
    session.once("close", () => sessions.delete(session));
  });
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    stream.on("error", () => {});
    if (headers[":path"]?.startsWith("/stream")) {
      onCall(stream, headers, Buffer.alloc(0));
      return;
    }
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => onCall(stream, headers, Buffer.concat(chunks).subarray(5)));
  });
  server.listen(path === undefined ? { port: 0, host: "127.0.0.1" } : { path });
  await once(server, "listening");
  const stop = async (): Promise<void> => {
    for (const session of sessions) session.destroy();
    server.close();
  };
  t.after(stop);
  return { port: (server.address() as AddressInfo).port, sessions, stop };
}

/** Answers with the bytes as they are, and a status. */
export function answerRaw(
  stream: ServerHttp2Stream,
  body: Uint8Array,
  status: Record<string, string> = { "grpc-status": "0" },
): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers(status));
  stream.end(body);
}

/** Answers with one message, uncompressed, and status OK. */
export const answer = (stream: ServerHttp2Stream, message: Uint8Array): void => answerRaw(stream, framedMessage(message));
