import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants, type IncomingHttpHeaders } from "node:http2";
import { EtcdError, etcdErrorOf } from "./errors.ts";

/**
 * gRPC to one server over one HTTP/2 connection of node:http2: unary calls and streams of raw messages, of any size. The
 * connection is made at the first call and again when it was lost, not more often than a backoff allows. A server that
 * does not answer pings while calls wait is given up, and its calls fail at once.
 *
 * `unsent` errors were never seen by the server: it was not reached, or said so (GOAWAY, REFUSED_STREAM).
 * Source: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, RFC 9113
 */
export interface GrpcConnection {
  /** @throws EtcdError */
  unary(path: string, message: Buffer, timeoutMs: number): Promise<Buffer>;
  /** Ends with `ended`, once, unless it is cancelled. */
  stream(path: string, handlers: GrpcStreamHandlers): GrpcStream;
  close(): void;
}

export interface GrpcStreamHandlers {
  /** @param message a view that lives as long as it is held */
  message(message: Buffer): void;
  ended(err: EtcdError): void;
}

export interface GrpcStream {
  /** Kept until the connection is there. */
  write(message: Buffer): void;
  cancel(): void;
}

export interface GrpcOptions {
  /** PEM. */
  ca?: Buffer | undefined;
  cert?: Buffer | undefined;
  key?: Buffer | undefined;
}

const connectTimeoutMs = 2_000;
const firstBackoffMs = 100;
const longestBackoffMs = 3_000;
/** Calls that wait this long have the connection looked at; etcd takes no more than a ping in 5 s as good manners. */
const watchEveryMs = 500;
const silenceMs = 1_000;
const pingPatienceMs = 2_000;
const pingAtMostEveryMs = 6_000;
/** Streams that wait for events are quiet for long. */
const quietStreamPingMs = 30_000;
/** Flow control must not slow down lists. */
const windowBytes = 16 * 1024 * 1024;
/** What node:http2 may hold for one connection, in MB; beyond it would refuse streams. */
const sessionMemoryMb = 4_096;

/** @param server `https://10.0.0.1:2379`; without a scheme it is plain */
export function newGrpcConnection(server: string, options: GrpcOptions): GrpcConnection {
  const origin = server.includes("://") ? server : `http://${server}`;
  const { protocol, host } = new URL(origin);
  /** As a flat list, which node passes on without sorting it into an object. */
  const commonHeaders = [
    ...[":method", "POST", ":scheme", protocol.slice(0, -1), ":authority", host],
    ...["content-type", "application/grpc", "te", "trailers"],
  ];
  let session: ClientHttp2Session | undefined;
  let connecting: Promise<ClientHttp2Session> | undefined;
  let failures = 0;
  let notBefore = 0;
  let closed = false;
  /** Unary calls that wait for an answer. */
  let calls = 0;
  let streams = 0;
  /** Time of the last sign of life, or of the first call that waits for one. */
  let heard = 0;

  function connected(): ClientHttp2Session | Promise<ClientHttp2Session> {
    if (session !== undefined) return session;
    if (closed) throw new EtcdError("canceled", "etcd client is closed");
    if (connecting !== undefined) return connecting;
    if (Date.now() < notBefore) throw new EtcdError("unsent", `no connection to ${origin}`);
    connecting = dial().finally(() => {
      connecting = undefined;
    });
    return connecting;
  }

  function dial(): Promise<ClientHttp2Session> {
    return new Promise((resolve, reject) => {
      const { ca, cert, key } = options;
      const made = connect(origin, {
        ...(ca !== undefined && { ca }),
        ...(cert !== undefined && { cert }),
        ...(key !== undefined && { key }),
        settings: { enablePush: false, initialWindowSize: windowBytes },
        maxSessionMemory: sessionMemoryMb,
      });
      let failed = false;
      const fail = (why: string): void => {
        if (failed) return;
        failed = true;
        clearTimeout(timer);
        failures++;
        notBefore = Date.now() + Math.min(firstBackoffMs * 2 ** Math.min(failures - 1, 10), longestBackoffMs);
        made.destroy();
        reject(new EtcdError("unsent", `cannot connect to ${origin}: ${why}`));
      };
      const timer = setTimeout(() => fail("timed out"), connectTimeoutMs);
      let last = "closed";
      made.on("error", (err) => {
        last = err.message;
      });
      made.once("close", () => {
        if (session === made) drop(made);
        else fail(last);
      });
      made.once("goaway", () => drop(made));
      made.once("connect", () => {
        clearTimeout(timer);
        if (closed) fail("etcd client is closed");
        // A process that stood still sees its timer and the connection in one turn: what is given up stays so.
        if (failed) return;
        made.setLocalWindowSize(windowBytes);
        failures = 0;
        heard = Date.now();
        session = made;
        watchOver(made);
        resolve(made);
      });
    });
  }

  /** What is under way on it goes on to its end; new calls get another connection. */
  function drop(which: ClientHttp2Session): void {
    if (session === which) session = undefined;
  }

  /** Pings a server that is silent while something waits for it, and gives it up when it stays silent. */
  function watchOver(made: ClientHttp2Session): void {
    let pinged = 0;
    let answered = true;
    const timer = setInterval(() => {
      const now = Date.now();
      if (!answered && now - pinged >= pingPatienceMs) {
        drop(made);
        made.destroy(new Error(`${origin} is silent`));
        return;
      }
      const patience = calls > 0 ? silenceMs : streams > 0 ? quietStreamPingMs : Number.POSITIVE_INFINITY;
      if (made.destroyed || !answered || now - heard < patience || now - pinged < pingAtMostEveryMs) return;
      pinged = now;
      answered = false;
      made.ping((err) => {
        if (err !== null) return;
        answered = true;
        heard = Date.now();
      });
    }, watchEveryMs);
    timer.unref();
    made.once("close", () => clearInterval(timer));
  }

  function open(on: ClientHttp2Session, path: string, name: string, value: string): ClientHttp2Stream {
    try {
      return on.request([":path", path, ...commonHeaders, name, value]);
    } catch (err) {
      drop(on);
      throw new EtcdError("unsent", (err as Error).message, { cause: err });
    }
  }

  function call(on: ClientHttp2Session, path: string, message: Buffer, timeoutMs: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const stream = open(on, path, "grpc-timeout", `${timeoutMs}m`);
      if (calls++ === 0) heard = Math.max(heard, Date.now() - silenceMs / 2);
      let status: IncomingHttpHeaders = noHeaders;
      let first: Buffer | undefined;
      let more: Buffer[] | undefined;
      let done = false;
      const settle = (): boolean => {
        if (done) return false;
        done = true;
        calls--;
        clearTimeout(timer);
        return true;
      };
      const timer = setTimeout(() => {
        if (!settle()) return;
        stream.close(constants.NGHTTP2_CANCEL);
        reject(new EtcdError("deadline", `no answer from ${origin} in ${timeoutMs} ms`));
      }, timeoutMs);
      stream.on("response", (headers) => {
        if (headers["grpc-status"] !== undefined || headers[":status"] !== 200) status = headers;
      });
      stream.on("data", (chunk: Buffer) => {
        if (first === undefined) first = chunk;
        else if (more === undefined) more = [first, chunk];
        else more.push(chunk);
      });
      stream.on("trailers", (headers) => {
        status = headers;
      });
      let failure: Error | undefined;
      stream.on("error", (err) => {
        failure = err;
      });
      stream.on("end", () => {
        if (status["grpc-status"] !== "0" || !settle()) return;
        heard = Date.now();
        const body = more === undefined ? first : Buffer.concat(more);
        if (body === undefined || body.length < 5) reject(new EtcdError("other", `${path}: answer without a message`));
        else resolve(body.subarray(5));
      });
      stream.on("close", () => {
        if (settle()) reject(failureOf(stream, status, failure));
      });
      stream.end(framed(message));
    });
  }

  return {
    unary(path, message, timeoutMs) {
      try {
        const on = connected();
        return on instanceof Promise ? on.then((on) => call(on, path, message, timeoutMs)) : call(on, path, message, timeoutMs);
      } catch (err) {
        return Promise.reject(err);
      }
    },

    stream(path, handlers) {
      const waiting: Buffer[] = [];
      let stream: ClientHttp2Stream | undefined;
      let over = false;
      const end = (err: EtcdError): void => {
        if (over) return;
        over = true;
        handlers.ended(err);
      };
      const begin = (on: ClientHttp2Session): void => {
        if (over) return;
        // A member that loses its leader is to end the watch, instead of keeping it silent.
        const opened = open(on, path, "hasleader", "true");
        stream = opened;
        streams++;
        let status: IncomingHttpHeaders = noHeaders;
        let failure: Error | undefined;
        const deframe = newDeframer((message) => {
          if (!over) handlers.message(message);
        });
        opened.on("response", (headers) => {
          if (headers["grpc-status"] !== undefined || headers[":status"] !== 200) status = headers;
        });
        opened.on("trailers", (headers) => {
          status = headers;
        });
        opened.on("data", (chunk: Buffer) => {
          heard = Date.now();
          deframe(chunk);
        });
        opened.on("error", (err) => {
          failure = err;
        });
        opened.on("close", () => {
          streams--;
          end(failureOf(opened, status, failure));
        });
        for (const message of waiting) opened.write(framed(message));
      };
      // Later even when it fails at once: the caller has to know its stream first.
      Promise.resolve()
        .then(connected)
        .then(begin)
        .catch((err: unknown) => end(etcdErrorOf(err)));
      return {
        write(message) {
          if (stream === undefined) waiting.push(message);
          else if (!stream.destroyed) stream.write(framed(message));
        },
        cancel() {
          over = true;
          stream?.close(constants.NGHTTP2_CANCEL);
        },
      };
    },

    close() {
      closed = true;
      session?.destroy();
    },
  };
}

const noHeaders: IncomingHttpHeaders = Object.freeze({});

/** One message: not compressed, its length, its bytes. */
function framed(message: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(5 + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  message.copy(frame, 5);
  return frame;
}

/** Cuts a stream of chunks into messages. */
function newDeframer(onMessage: (message: Buffer) => void): (chunk: Buffer) => void {
  let parts: Buffer[] = [];
  let size = 0;
  let wanted = 5;
  return (chunk) => {
    parts.push(chunk);
    size += chunk.length;
    if (size < wanted) return;
    let rest = parts.length === 1 ? chunk : Buffer.concat(parts);
    wanted = 5;
    while (rest.length >= 5) {
      wanted = 5 + rest.readUInt32BE(1);
      if (rest.length < wanted) break;
      onMessage(rest.subarray(5, wanted));
      rest = rest.subarray(wanted);
      wanted = 5;
    }
    parts = rest.length === 0 ? [] : [rest];
    size = rest.length;
  };
}

/** Why a stream ended without an answer. */
function failureOf(stream: ClientHttp2Stream, status: IncomingHttpHeaders, failure: Error | undefined): EtcdError {
  const code = status["grpc-status"];
  if (code !== undefined) {
    return etcdErrorOf({ code: Number(code), details: decodeMessage(String(status["grpc-message"] ?? "")) });
  }
  if (status[":status"] !== undefined) return new EtcdError("other", `HTTP status ${status[":status"]} from etcd`);
  const text = failure?.message ?? "the connection was closed";
  // An id of its own is given to a stream when it is sent.
  const refused = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM || stream.id === undefined;
  return new EtcdError(refused ? "unsent" : "unavailable", text, failure === undefined ? {} : { cause: failure });
}

function decodeMessage(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
