import type { Connect, Connection } from "@coxswain/apimachinery/client/connect";
import { framedMessage, newMessageReader, statusMessage } from "@coxswain/apimachinery/http2/grpc-messages";
import { encodeFields } from "@coxswain/apimachinery/http2/hpack-encoder";
import { EtcdError, etcdErrorOf } from "./errors.ts";
import { deadlineExceeded, type GrpcCalls, type GrpcMethod, unavailable } from "./grpc-calls.ts";
import {
  addressOf,
  connectHttp2,
  type Fields,
  type Http2Connection,
  type Http2Stream,
  type StreamEnd,
} from "./http2/connection.ts";

/**
 * gRPC to one server over one HTTP/2 connection: unary calls and streams of raw messages, of any size. The
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

/** How the server is shown who asks. PEM. */
export interface EtcdIdentity {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** Where the certificate is from, for messages. */
  readonly certFile: string;
}

export interface GrpcOptions {
  /** PEM. */
  ca?: Buffer | undefined;
  cert?: Buffer | undefined;
  key?: Buffer | undefined;
  /** The pair that counts at this moment, in place of `cert` and `key`, for each new connection. */
  identity?: (() => EtcdIdentity | undefined) | undefined;
  /** Told of each call. */
  calls?: GrpcCalls | undefined;
  /** How the server is reached, when not directly. */
  connect?: Connect | undefined;
}

const connectTimeoutMs = 2_000;
/** Over somebody else, who has to reach the server first. */
const tunnelTimeoutMs = 5_000;
const firstBackoffMs = 100;
const longestBackoffMs = 3_000;
/** Calls that wait this long have the connection looked at; etcd takes no more than a ping in 5 s as good manners. */
const watchEveryMs = 500;
const silenceMs = 1_000;
const pingPatienceMs = 2_000;
const pingAtMostEveryMs = 6_000;
/** Streams that wait for events are quiet for long. */
const quietStreamPingMs = 30_000;
/** Headers of calls that are kept: they are the same but for odd deadlines. */
const mostBlocks = 64;

/** @param server `https://10.0.0.1:2379`; without a scheme it is plain */
export function newGrpcConnection(server: string, options: GrpcOptions): GrpcConnection {
  const origin = server.includes("://") ? server : `http://${server}`;
  const { protocol, host } = new URL(origin);
  const blocks = new Map<string, Buffer>();
  let session: Http2Connection | undefined;
  let connecting: Promise<Http2Connection> | undefined;
  let failures = 0;
  let notBefore = 0;
  /** Why the last attempt failed. */
  let reason = "";
  let closed = false;
  /** Unary calls that wait for an answer. */
  let calls = 0;
  let streams = 0;
  /** Time of the last sign of life, or of the first call that waits for one. */
  let heard = 0;

  function connected(): Http2Connection | Promise<Http2Connection> {
    if (session !== undefined) return session;
    if (closed) throw new EtcdError("canceled", "etcd client is closed");
    if (connecting !== undefined) return connecting;
    if (performance.now() < notBefore) throw new EtcdError("unsent", `no connection to ${origin}: ${reason}`);
    connecting = dial().finally(() => {
      connecting = undefined;
    });
    return connecting;
  }

  function dial(): Promise<Http2Connection> {
    return new Promise((resolve, reject) => {
      let state: "connecting" | "ready" | "failed" = "connecting";
      let unwatch = (): void => {};
      let dialled: Http2Connection | undefined;
      const fail = (why: string): void => {
        if (state !== "connecting") return;
        state = "failed";
        reason = why;
        clearTimeout(timer);
        failures++;
        notBefore = performance.now() + Math.min(firstBackoffMs * 2 ** Math.min(failures - 1, 10), longestBackoffMs);
        dialled?.destroy(new Error(why));
        reject(new EtcdError("unsent", `cannot connect to ${origin}: ${why}`));
      };
      const timer = setTimeout(() => fail("timed out"), options.connect ? tunnelTimeoutMs : connectTimeoutMs);
      const begin = (way?: Connection): void => {
        const made = connectHttp2(
          origin,
          { ...options, ...options.identity?.(), way },
          {
            ready() {
              clearTimeout(timer);
              if (closed) fail("etcd client is closed");
              // A process that stood still sees its timer and the connection in one turn: what is given up stays so.
              if (state === "failed") return;
              state = "ready";
              failures = 0;
              session = made;
              unwatch = watchOver(made);
              resolve(made);
            },
            heard() {
              heard = performance.now();
            },
            leaving: () => drop(made),
            closed(reason) {
              unwatch();
              drop(made);
              fail(reason);
            },
          },
        );
        dialled = made;
      };
      if (options.connect === undefined) return begin();
      const { host, port } = addressOf(origin);
      options
        .connect(host, port)
        .then((way) => {
          if (state === "failed") way.destroy();
          else begin(way);
        })
        .catch((err: Error) => fail(err.message));
    });
  }

  /** What is under way on it goes on to its end; new calls get another connection. */
  function drop(which: Http2Connection): void {
    if (session === which) session = undefined;
  }

  /** Pings a server that is silent while something waits for it, and gives it up when it stays silent. */
  function watchOver(made: Http2Connection): () => void {
    let pinged = 0;
    let answered = true;
    const timer = setInterval(() => {
      const now = performance.now();
      if (!answered && now - pinged >= pingPatienceMs) {
        drop(made);
        made.destroy(new Error(`${origin} is silent`));
        return;
      }
      const patience = calls > 0 ? silenceMs : streams > 0 ? quietStreamPingMs : Number.POSITIVE_INFINITY;
      if (!answered || now - heard < patience || now - pinged < pingAtMostEveryMs) return;
      pinged = now;
      answered = false;
      made.ping(() => {
        answered = true;
      });
    }, watchEveryMs);
    timer.unref();
    return () => clearInterval(timer);
  }

  function blockOf(path: string, name: string, value: string): Buffer {
    const key = `${path} ${name} ${value}`;
    let block = blocks.get(key);
    if (block === undefined) {
      const fields = {
        ":method": "POST",
        ":scheme": protocol.slice(0, -1),
        ":path": path,
        ":authority": host,
        "content-type": "application/grpc",
        te: "trailers",
        [name]: value,
      };
      block = encodeFields(Object.entries(fields).flat());
      if (blocks.size >= mostBlocks) blocks.clear();
      blocks.set(key, block);
    }
    return block;
  }

  function request(on: Http2Connection, ...args: Parameters<Http2Connection["request"]>): Http2Stream {
    try {
      return on.request(...args);
    } catch (err) {
      drop(on);
      throw new EtcdError("unsent", (err as Error).message, { cause: err });
    }
  }

  function call(on: Http2Connection, path: string, message: Buffer, timeoutMs: number): Promise<Buffer> {
    const counted = options.calls?.(path, "unary");
    return new Promise((resolve, reject) => {
      let status = noFields;
      let first: Buffer | undefined;
      let more: Buffer[] | undefined;
      const block = withParent(blockOf(path, "grpc-timeout", `${timeoutMs}m`), counted);
      const stream = request(on, block, framedMessage(message), true, {
        fields(fields) {
          if (isStatus(fields)) status = fields;
        },
        data(bytes) {
          if (first === undefined) first = bytes;
          else if (more === undefined) more = [first, bytes];
          else more.push(bytes);
        },
        closed(end) {
          clearTimeout(timer);
          calls--;
          const body = more === undefined ? first : Buffer.concat(more);
          if (body !== undefined) counted?.received();
          counted?.handled(codeOf(status));
          if (end.type !== "ended" || status.get("grpc-status") !== "0") reject(failureOf(status, end));
          else if (body === undefined || body.length < 5) reject(new EtcdError("other", `${path}: answer without a message`));
          else resolve(body.subarray(5));
        },
      });
      counted?.started();
      counted?.sent();
      if (calls++ === 0) heard = Math.max(heard, performance.now() - silenceMs / 2);
      const timer = setTimeout(() => {
        calls--;
        stream.cancel();
        counted?.handled(deadlineExceeded);
        reject(new EtcdError("deadline", `no answer from ${origin} in ${timeoutMs} ms`));
      }, timeoutMs);
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
      const counted = options.calls?.(path, "bidi_stream");
      let stream: Http2Stream | undefined;
      let over = false;
      const end = (err: EtcdError): void => {
        if (over) return;
        over = true;
        handlers.ended(err);
      };
      const begin = (on: Http2Connection): void => {
        if (over) return;
        let status = noFields;
        const deframe = newMessageReader((message) => {
          if (over) return;
          counted?.received();
          handlers.message(message);
        });
        // A member that loses its leader is to end the watch, instead of keeping it silent.
        stream = request(on, withParent(blockOf(path, "hasleader", "true"), counted), noBytes, false, {
          fields(fields) {
            if (isStatus(fields)) status = fields;
          },
          data: deframe,
          closed(why) {
            streams--;
            counted?.handled(codeOf(status));
            end(failureOf(status, why));
          },
        });
        streams++;
        counted?.started();
        for (const message of waiting) write(stream, message);
      };
      const write = (on: Http2Stream, message: Buffer): void => {
        counted?.sent();
        on.write(framedMessage(message));
      };
      // Later even when it fails at once: the caller has to know its stream first.
      Promise.resolve()
        .then(connected)
        .then(begin)
        .catch((err: unknown) => end(etcdErrorOf(err)));
      return {
        write(message) {
          if (stream === undefined) waiting.push(message);
          else write(stream, message);
        },
        cancel() {
          if (over) return;
          over = true;
          if (stream === undefined) return;
          streams--;
          stream.cancel();
        },
      };
    },

    close() {
      closed = true;
      session?.destroy(new Error("etcd client is closed"));
    },
  };
}

const noFields: Fields = new Map();
const noBytes = Buffer.alloc(0);

/** Blocks need no memory, so that one may be put behind another. */
function withParent(block: Buffer, counted: GrpcMethod | undefined): Buffer {
  const parent = counted?.traceparent;
  return parent === undefined ? block : Buffer.concat([block, encodeFields(["traceparent", parent])]);
}

/** Trailers, or headers that say that there is no answer. */
function isStatus(fields: Fields): boolean {
  return fields.has("grpc-status") || fields.get(":status") !== "200";
}

/** Who gives no code is not there any more. */
function codeOf(status: Fields): number {
  return Number(status.get("grpc-status") ?? unavailable);
}

/** Why a stream ended without an answer. */
function failureOf(status: Fields, end: StreamEnd): EtcdError {
  const code = status.get("grpc-status");
  if (code !== undefined) return etcdErrorOf({ code: Number(code), details: statusMessage(status.get("grpc-message") ?? "") });
  const http = status.get(":status");
  if (http !== undefined) return new EtcdError("other", `HTTP status ${http} from etcd`);
  if (end.type === "ended") return new EtcdError("unavailable", "the answer has no status");
  return new EtcdError(end.type === "refused" ? "unsent" : "unavailable", end.reason);
}
