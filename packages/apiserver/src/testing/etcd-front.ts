import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import protobuf from "protobufjs/minimal.js";

/**
 * A proxy for a real etcd that reports another version. Requests are forwarded unchanged; in responses the version of the
 * member and the members' client addresses are replaced.
 */
interface EtcdFront {
  readonly endpoint: string;
  /** Version reported by members; with undefined, status requests get no response. */
  version: string | undefined;
  /** Number of forwarded MemberList and watch progress requests. */
  readonly seen: { memberLists: number; progressRequests: number };
  /** Closes all connections; new ones are accepted. */
  cut(): void;
}

interface TestContext {
  after(fn: () => void | Promise<void>): void;
}

/** @param target endpoint of the real etcd, `http://127.0.0.1:2379` */
export async function startEtcdFront(t: TestContext, target: string, version: string): Promise<EtcdFront> {
  const sessions = new Set<ServerHttp2Session>();
  let session: ClientHttp2Session | undefined;
  const behind = (): ClientHttp2Session => {
    if (session === undefined || session.closed || session.destroyed) {
      session = connect(target);
      session.on("error", () => {});
    }
    return session;
  };
  const server = createServer();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => {});
    session.on("close", () => sessions.delete(session));
  });
  server.on("stream", (stream: ServerHttp2Stream, headers) => pass(stream, headers));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = (): void => {
    for (const session of sessions) session.destroy();
  };
  t.after(() => {
    cut();
    session?.destroy();
    server.close();
  });
  const front = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    version: version as string | undefined,
    seen: { memberLists: 0, progressRequests: 0 },
    cut,
  };
  return front;

  function pass(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const { ":path": path = "", ":method": method, "content-type": type, hasleader } = headers;
    if (path.endsWith("/Status") && front.version === undefined) {
      stream.close();
      return;
    }
    const leader = hasleader === undefined ? {} : { hasleader };
    const onward = behind().request({
      ":path": path,
      ":method": method ?? "POST",
      "content-type": type,
      te: "trailers",
      ...leader,
    });
    for (const end of [stream, onward]) end.on("error", () => {});
    stream.on("close", () => onward.close());
    onward.on("close", () => {
      if (!onward.readableEnded) stream.close();
    });
    stream.on("data", (chunk: Buffer) => {
      if (path.endsWith("/Watch") && chunk.includes(progressRequest)) front.seen.progressRequests++;
      onward.write(chunk);
    });
    stream.on("end", () => onward.end());
    answer(stream, onward, changeOf(path));
  }

  function changeOf(path: string): ((message: Buffer) => Uint8Array) | undefined {
    if (path.endsWith("/Status")) return (status) => withField(status, 2, () => Buffer.from(front.version as string));
    if (!path.endsWith("/MemberList")) return undefined;
    front.seen.memberLists++;
    const url = Buffer.from(front.endpoint);
    return (list) => withField(list, 2, (member) => withField(member, 4, () => url));
  }
}

/** Serialized request including the gRPC frame header. */
const progressRequest = Buffer.from([0, 0, 0, 0, 2, 26, 0]);

function answer(
  stream: ServerHttp2Stream,
  onward: ClientHttp2Stream,
  change: ((message: Buffer) => Uint8Array) | undefined,
): void {
  const body: Buffer[] = [];
  let trailers: IncomingHttpHeaders = {};
  onward.on("response", (headers) => {
    if (stream.destroyed) return;
    const { ":status": status, "content-type": type, "grpc-status": code, "grpc-message": message } = headers;
    // Without a body, a trailers-only response.
    const grpc = code === undefined ? {} : { "grpc-status": code, "grpc-message": message };
    stream.respond({ ":status": status, "content-type": type, ...grpc }, { waitForTrailers: code === undefined });
    stream.on("wantTrailers", () => {
      const { "grpc-status": last, "grpc-message": text } = trailers;
      stream.sendTrailers({ "grpc-status": last, ...(text !== undefined && { "grpc-message": text }) });
    });
  });
  onward.on("trailers", (headers) => {
    trailers = headers;
  });
  onward.on("data", (chunk: Buffer) => void (change === undefined ? stream.write(chunk) : body.push(chunk)));
  onward.on("end", () => {
    if (stream.destroyed) return;
    if (change !== undefined && body.length > 0) stream.write(framed(change(Buffer.concat(body).subarray(5))));
    stream.end();
  });
}

function framed(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Replaces the bytes of all length-delimited fields with that number. */
function withField(message: Uint8Array, field: number, change: (bytes: Uint8Array) => Uint8Array): Uint8Array {
  const reader = protobuf.Reader.create(message);
  const writer = protobuf.Writer.create();
  const parts: Uint8Array[] = [];
  while (reader.pos < message.length) {
    const from = reader.pos;
    const tag = reader.uint32();
    if (tag !== ((field << 3) | 2)) {
      reader.skipType(tag & 7);
      parts.push(message.subarray(from, reader.pos));
      continue;
    }
    parts.push(writer.reset().uint32(tag).bytes(change(reader.bytes())).finish());
  }
  return Buffer.concat(parts);
}
