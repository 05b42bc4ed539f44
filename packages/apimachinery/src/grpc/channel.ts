import { setTimeout as pause } from "node:timers/promises";
import type { Connect } from "../client/connect.ts";
import type { GrpcCalls } from "./calls.ts";
import { Connector, type GrpcSession } from "./connector.ts";
import { asGrpcError, GrpcError, grpcCodes } from "./grpc-error.ts";
import type { KeepaliveOptions } from "./keepalive.ts";
import { type GrpcStreamHandlers, MessageStream } from "./message-stream.ts";
import { RequestBlocks } from "./request-blocks.ts";
import { dialTarget, type GrpcIdentity, type GrpcTarget, grpcTarget } from "./target.ts";
import { UnaryCall } from "./unary-call.ts";

export interface GrpcChannelOptions {
  /** Certificates for https; asked for each new connection. */
  readonly identity?: (() => GrpcIdentity) | undefined;
  /** Dials the server; undefined: directly. */
  readonly connect?: Connect | undefined;
  readonly connectTimeoutMs?: number;
  readonly firstBackoffMs?: number;
  readonly longestBackoffMs?: number;
  /** undefined: no pings. Servers allow one in five minutes unless they are configured otherwise. */
  readonly keepalive?: KeepaliveOptions;
  /** Source: google.golang.org/grpc defaultClientMaxReceiveMessageSize */
  readonly mostMessageBytes?: number;
  readonly userAgent?: string;
  /** Receives the events of calls. */
  readonly calls?: GrpcCalls | undefined;
}

const defaults = {
  connectTimeoutMs: 5_000,
  firstBackoffMs: 100,
  longestBackoffMs: 3_000,
  mostMessageBytes: 4 * 1024 * 1024,
};

/** A field of the request, besides those of every call. */
export interface RequestField {
  readonly name: string;
  readonly value: string;
}

/**
 * gRPC to one server over one HTTP/2 connection, which is established by the first call and again with backoff. Messages are raw
 * bytes, uncompressed.
 * Source: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
export class GrpcChannel {
  readonly #target: GrpcTarget;
  readonly #mostMessageBytes: number;
  readonly #calls: GrpcCalls | undefined;
  readonly #connector: Connector;
  readonly #blocks: RequestBlocks;

  /** @param target see {@link grpcTarget} @throws Error for an invalid target */
  constructor(target: string, options: GrpcChannelOptions = {}) {
    const { identity, connect, keepalive, calls, userAgent, mostMessageBytes, ...timing } = { ...defaults, ...options };
    this.#target = grpcTarget(target);
    this.#mostMessageBytes = mostMessageBytes;
    this.#calls = calls;
    this.#blocks = new RequestBlocks({ ...this.#target, userAgent });
    const dial = () => dialTarget(this.#target, identity?.() ?? {}, connect);
    this.#connector = new Connector({ ...timing, name: this.#target.name, dial, keepalive });
  }

  /**
   * @param path `/etcdserverpb.KV/Txn`
   * @param timeoutMs includes the time to connect
   * @returns the response, a view on memory that is not reused
   * @throws GrpcError
   */
  unary(path: string, message: Buffer, timeoutMs: number): Promise<Buffer> {
    try {
      const session = this.#connector.current();
      if (session instanceof Promise) return this.#callOnce(session, path, message, timeoutMs);
      return this.#call(session, path, message, timeoutMs);
    } catch (err) {
      return Promise.reject(err);
    }
  }

  /**
   * As {@link unary}, but until the deadline it waits for a server that cannot be reached. A call that the server may have seen is
   * not repeated.
   */
  async unaryWhenReady(path: string, message: Buffer, timeoutMs: number): Promise<Buffer> {
    const until = performance.now() + timeoutMs;
    const signal = AbortSignal.timeout(timeoutMs);
    for (;;) {
      const session = await this.#whenReady(signal);
      try {
        return await this.#call(session, path, message, leftUntil(until));
      } catch (err) {
        if (!(err instanceof GrpcError && err.unprocessed)) throw err;
      }
    }
  }

  /** Waits for a connection. @throws GrpcError DeadlineExceeded after `timeoutMs`; Canceled when the channel is closed */
  async ready(timeoutMs: number): Promise<void> {
    await this.#whenReady(AbortSignal.timeout(timeoutMs));
  }

  /** Opens a stream of messages in both directions. Its handlers are never called before it is returned. */
  stream(path: string, handlers: GrpcStreamHandlers, field?: RequestField): MessageStream {
    const observer = this.#calls?.(path, "bidi_stream");
    let keepalive: GrpcSession["keepalive"] | undefined;
    const onOver = (): void => keepalive?.streamEnded();
    const stream = new MessageStream(handlers, { mostMessageBytes: this.#mostMessageBytes, observer, onOver });
    const block = this.#blocks.get(path, field?.name ?? "", field?.value ?? "", observer?.traceparent);
    Promise.resolve()
      .then(() => this.#connector.current())
      .then((session) => {
        if (stream.isOver) return;
        stream.start((events) => this.#opened(session, () => session.connection.request(block, noBytes, false, events)));
        keepalive = session.keepalive;
        keepalive.streamBegan();
      })
      .catch((err: unknown) => stream.fail(asGrpcError(err)));
    return stream;
  }

  close(): void {
    this.#connector.close();
  }

  /** A call for which a connection is being made. */
  async #callOnce(connecting: Promise<GrpcSession>, path: string, message: Buffer, timeoutMs: number): Promise<Buffer> {
    const until = performance.now() + timeoutMs;
    const session = await abortable(connecting, AbortSignal.timeout(timeoutMs));
    return this.#call(session, path, message, leftUntil(until));
  }

  async #whenReady(signal: AbortSignal): Promise<GrpcSession> {
    for (;;) {
      try {
        return await abortable(Promise.resolve(this.#connector.current()), signal);
      } catch (err) {
        if (signal.aborted || !(err instanceof GrpcError && err.unprocessed)) throw err;
        await pause(this.#connector.backoffMs, undefined, { signal }).catch(() => {});
        if (signal.aborted) throw deadlineExceeded(err);
      }
    }
  }

  #call(session: GrpcSession, path: string, message: Buffer, timeoutMs: number): Promise<Buffer> {
    const observer = this.#calls?.(path, "unary");
    const block = this.#blocks.get(path, "grpc-timeout", `${timeoutMs}m`, observer?.traceparent);
    const request = { block, message, timeoutMs, mostResponseBytes: this.#mostMessageBytes, observer };
    return new Promise((resolve, reject) => {
      this.#opened(session, () => new UnaryCall(session, request, resolve, reject));
    });
  }

  /** @throws GrpcError (`unprocessed`) when the connection accepts no more calls */
  #opened<T>(session: GrpcSession, open: () => T): T {
    try {
      return open();
    } catch (err) {
      this.#connector.drop(session);
      throw asGrpcError(err);
    }
  }
}

const noBytes = Buffer.alloc(0);

/** The server has not seen the call. */
const deadlineExceeded = (cause?: unknown): GrpcError =>
  new GrpcError(grpcCodes.deadlineExceeded, "context deadline exceeded", { cause, unprocessed: true });

const leftUntil = (until: number): number => Math.max(1, Math.ceil(until - performance.now()));

/** @throws GrpcError DeadlineExceeded when `signal` is aborted first */
function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(deadlineExceeded());
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    void promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
