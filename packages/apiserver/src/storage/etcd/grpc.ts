import type { Connect, Connection } from "@coxswain/apimachinery/client/connect";
import { framedMessage, newMessageReader, statusMessage } from "@coxswain/apimachinery/grpc/messages";
import { encodeFields } from "@coxswain/apimachinery/http2/wire/hpack-encoder";
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
 * gRPC to one server over one HTTP/2 connection: unary calls and streams of raw messages of any size. The connection is
 * established on the first call and re-established with backoff. When the server does not answer pings while calls are
 * pending, the connection is destroyed and the calls fail at once.
 *
 * `unsent` errors: the server did not process the call. It was not reached, or reported so (GOAWAY, REFUSED_STREAM).
 * Source: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, RFC 9113
 */
export interface GrpcConnection {
  /** @throws EtcdError */
  unary(path: string, message: Buffer, timeoutMs: number): Promise<Buffer>;
  /** Calls `handlers.ended` once, unless it is cancelled. */
  stream(path: string, handlers: GrpcStreamHandlers): GrpcStream;
  close(): void;
}

export interface GrpcStreamHandlers {
  /** @param message a view on memory that is not reused; may be kept */
  message(message: Buffer): void;
  ended(err: EtcdError): void;
}

export interface GrpcStream {
  /** Buffered until the connection is established. */
  write(message: Buffer): void;
  cancel(): void;
}

/** Client certificate and key, PEM. */
export interface EtcdIdentity {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** Path of the certificate, for error messages. */
  readonly certFile: string;
}

export interface GrpcOptions {
  /** PEM. */
  ca?: Buffer | undefined;
  cert?: Buffer | undefined;
  key?: Buffer | undefined;
  /** The current client certificate, used instead of `cert` and `key` for each new connection. */
  identity?: (() => EtcdIdentity | undefined) | undefined;
  /** Metrics of calls. */
  calls?: GrpcCalls | undefined;
  /** Dials the server; undefined: directly. */
  connect?: Connect | undefined;
}

const connectTimeoutMs = 2_000;
/** When dialing through a proxy, which has to reach the server first. */
const tunnelTimeoutMs = 5_000;
const firstBackoffMs = 100;
const longestBackoffMs = 3_000;
/** Period of the keepalive check. etcd treats pings more often than every 5 s as abuse, see `pingAtMostEveryMs`. */
const watchEveryMs = 500;
const silenceMs = 1_000;
const pingPatienceMs = 2_000;
const pingAtMostEveryMs = 6_000;
/** Watch streams are idle for long periods. */
const quietStreamPingMs = 30_000;
/** Header blocks are cached; they are the same except for unusual deadlines. */
const mostBlocks = 64;

/** @param server `https://10.0.0.1:2379`; without a scheme: plain http */
export function newGrpcConnection(server: string, options: GrpcOptions): GrpcConnection {
  const origin = server.includes("://") ? server : `http://${server}`;
  const { protocol, host } = new URL(origin);
  const blocks = new Map<string, Buffer>();
  let session: Http2Connection | undefined;
  let connecting: Promise<Http2Connection> | undefined;
  let failures = 0;
  let notBefore = 0;
  /** Error text of the last failed attempt. */
  let reason = "";
  let closed = false;
  /** Unary calls with an outstanding response. */
  let calls = 0;
  let streams = 0;
  /** Time of the last received data, or of the first outstanding call. */
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
              // After a pause of the process the timer and the connection fire in the same event-loop turn:
              // a failed attempt stays failed.
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

  /** Streams on the connection continue to their end; new calls get another connection. */
  function drop(which: Http2Connection): void {
    if (session === which) session = undefined;
  }

  /**
   * Keepalive: pings a server that is silent while calls are pending, and destroys the connection when the ping is not answered.
   */
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
        // Makes a member that loses its leader end the watch instead of leaving it silent.
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
      // Asynchronous even for immediate failures: the caller must have its GrpcStream before `ended` is called.
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

/** Header blocks are encoded without the dynamic table, so that they can be concatenated. */
function withParent(block: Buffer, counted: GrpcMethod | undefined): Buffer {
  const parent = counted?.traceparent;
  return parent === undefined ? block : Buffer.concat([block, encodeFields(["traceparent", parent])]);
}

/** Trailers, or headers of a response without a body. */
function isStatus(fields: Fields): boolean {
  return fields.has("grpc-status") || fields.get(":status") !== "200";
}

/** The gRPC status code; UNAVAILABLE when the server sent none. */
function codeOf(status: Fields): number {
  return Number(status.get("grpc-status") ?? unavailable);
}

/** The error of a call that ended without a successful response. */
function failureOf(status: Fields, end: StreamEnd): EtcdError {
  const code = status.get("grpc-status");
  if (code !== undefined) return etcdErrorOf({ code: Number(code), details: statusMessage(status.get("grpc-message") ?? "") });
  const http = status.get(":status");
  if (http !== undefined) return new EtcdError("other", `HTTP status ${http} from etcd`);
  if (end.type === "ended") return new EtcdError("unavailable", "the answer has no status");
  return new EtcdError(end.type === "refused" ? "unsent" : "unavailable", end.reason);
}
