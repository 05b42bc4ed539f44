import type { Duplex } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { messageOf } from "../../objects/errors/message.ts";
import type { Clock, Timer } from "../../process/clock/clock.ts";
import { errorOf } from "../../process/narrowing/error-of.ts";
import type { Connect } from "../connect.ts";
import { ClientConnection } from "../http2/client/connection.ts";
import type { GrpcSession } from "./call.ts";
import { type GrpcStreamHandlers, MessageStream, RequestBlocks, UnaryCall } from "./call.ts";
import type { GrpcCalls } from "./calls.ts";
import { asGrpcError, GrpcError, grpcCodes } from "./grpc-error.ts";
import { dialTarget, type GrpcIdentity, type GrpcTarget, grpcTarget } from "./target.ts";

export interface GrpcChannelOptions {
  /** Certificates for https; read for each new connection. */
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
interface RequestField {
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
   * Like {@link unary}, but waits until the deadline for an unreachable server. A call that the server may have received is
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
    let keepalive: Session["keepalive"] | undefined;
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
  async #callOnce(connecting: Promise<Session>, path: string, message: Buffer, timeoutMs: number): Promise<Buffer> {
    const until = performance.now() + timeoutMs;
    const session = await abortable(connecting, AbortSignal.timeout(timeoutMs));
    return this.#call(session, path, message, leftUntil(until));
  }

  async #whenReady(signal: AbortSignal): Promise<Session> {
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

  #call(session: Session, path: string, message: Buffer, timeoutMs: number): Promise<Buffer> {
    const observer = this.#calls?.(path, "unary");
    const block = this.#blocks.get(path, "grpc-timeout", `${timeoutMs}m`, observer?.traceparent);
    const request = { block, message, timeoutMs, mostResponseBytes: this.#mostMessageBytes, observer };
    return new Promise((resolve, reject) => {
      this.#opened(session, () => new UnaryCall(session, request, resolve, reject));
    });
  }

  /** @throws GrpcError (`unprocessed`) when the connection accepts no more calls */
  #opened<T>(session: Session, open: () => T): T {
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

/** An established connection. */
interface Session extends GrpcSession {
  readonly keepalive: Keepalive;
}

interface ConnectorOptions {
  /** The server's name, for messages. */
  readonly name: string;
  readonly dial: () => Duplex | PromiseLike<Duplex>;
  readonly connectTimeoutMs: number;
  /** Pause after the first failed attempt; it doubles with each further one. */
  readonly firstBackoffMs: number;
  readonly longestBackoffMs: number;
  readonly keepalive?: KeepaliveOptions | undefined;
}

/** Receive windows, large enough that flow control does not slow down lists. */
const windowBytes = 16 * 1024 * 1024;
const windows = { streamWindowBytes: windowBytes, connectionWindowBytes: windowBytes };
const closedByUs = "the client is closed";

/** Keeps one connection to a server: established on demand, and again with backoff. */
class Connector {
  readonly #options: ConnectorOptions;
  #session: Session | undefined;
  #connecting: Promise<Session> | undefined;
  #attempt: Attempt | undefined;
  #failures = 0;
  #notBefore = 0;
  /** Error text of the last failed attempt. */
  #reason = "";
  #isClosed = false;

  constructor(options: ConnectorOptions) {
    this.#options = options;
  }

  /** Time until the next attempt is allowed. */
  get backoffMs(): number {
    return Math.max(0, this.#notBefore - performance.now());
  }

  /** @throws GrpcError (`unprocessed`) during backoff, and when the client is closed; the promise when the attempt fails */
  current(): Session | Promise<Session> {
    if (this.#session !== undefined) return this.#session;
    if (this.#isClosed) throw new GrpcError(grpcCodes.canceled, closedByUs);
    if (this.#connecting !== undefined) return this.#connecting;
    const { name } = this.#options;
    if (performance.now() < this.#notBefore) throw unreachable(`no connection to ${name}: ${this.#reason}`);
    this.#connecting = this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  /** New calls use another connection; calls on this one continue until they end. */
  drop(session: Session): void {
    if (this.#session === session) this.#session = undefined;
  }

  close(): void {
    this.#isClosed = true;
    this.#attempt?.abort(closedByUs);
    this.#session?.connection.destroy(new Error(closedByUs));
  }

  async #connect(): Promise<Session> {
    const { name, connectTimeoutMs, longestBackoffMs, firstBackoffMs } = this.#options;
    const attempt = new Attempt(this.#options, (session) => this.drop(session));
    this.#attempt = attempt;
    try {
      const session = await attempt.start(connectTimeoutMs);
      if (this.#isClosed) {
        session.connection.destroy(new Error(closedByUs));
        throw new Error(closedByUs);
      }
      this.#failures = 0;
      if (attempt.isUsable) this.#session = session;
      return session;
    } catch (err) {
      this.#reason = messageOf(err);
      const backoffMs = firstBackoffMs * 2 ** Math.min(this.#failures++, 10);
      this.#notBefore = performance.now() + Math.min(backoffMs, longestBackoffMs);
      throw unreachable(`cannot connect to ${name}: ${this.#reason}`, err);
    } finally {
      this.#attempt = undefined;
    }
  }
}

const unreachable = (details: string, cause?: unknown): GrpcError =>
  new GrpcError(grpcCodes.unavailable, details, { unprocessed: true, cause });

/** One attempt to connect. It succeeds with the server's SETTINGS, or fails once and for all. */
class Attempt {
  readonly #options: ConnectorOptions;
  readonly #onGone: (session: Session) => void;
  readonly #result = Promise.withResolvers<Session>();
  #state: "connecting" | "ready" | "failed" = "connecting";
  #timer: NodeJS.Timeout | undefined;
  #session: Session | undefined;
  /** False when the server sent GOAWAY or closed the connection before it could be used. */
  isUsable = true;

  /** @param onGone called when the connection takes no more calls */
  constructor(options: ConnectorOptions, onGone: (session: Session) => void) {
    this.#options = options;
    this.#onGone = onGone;
  }

  /** @throws Error with the reason */
  start(timeoutMs: number): Promise<Session> {
    this.#timer = setTimeout(() => this.abort("timed out"), timeoutMs);
    try {
      const dialled = this.#options.dial();
      if (!("then" in dialled)) this.#begin(dialled);
      else
        void dialled
          .then((socket) => (this.#state === "failed" ? socket.destroy() : this.#begin(socket)))
          .then(undefined, this.#failed);
    } catch (err) {
      this.#failed(errorOf(err));
    }
    return this.#result.promise;
  }

  /** Fails the attempt unless it has succeeded. */
  abort(reason: string): void {
    clearTimeout(this.#timer);
    if (this.#state !== "connecting") return;
    this.#state = "failed";
    this.#session?.connection.destroy(new Error(reason));
    this.#result.reject(new Error(reason));
  }

  #begin(socket: Duplex): void {
    const connection = new ClientConnection(socket, windows, {
      ready: () => this.#ready(),
      heard: () => session.keepalive.heard(),
      leaving: () => this.#gone(session),
      closed: (reason) => {
        session.keepalive.stop();
        this.#gone(session);
        this.abort(reason);
      },
    });
    const session: Session = {
      connection,
      keepalive: new Keepalive(
        this.#options.keepalive,
        (answered) => connection.ping(answered),
        () => {
          this.#gone(session);
          connection.destroy(new Error(`${this.#options.name} is silent`));
        },
      ),
    };
    this.#session = session;
  }

  #ready(): void {
    clearTimeout(this.#timer);
    // After a suspension of the process the timeout and the connection can fire in the same event-loop turn; the attempt stays failed.
    if (this.#state === "failed") return;
    this.#state = "ready";
    const session = this.#session!;
    session.keepalive.start();
    this.#result.resolve(session);
  }

  #gone(session: Session): void {
    this.isUsable = false;
    this.#onGone(session);
  }

  readonly #failed = (err: Error): void => this.abort(err.message);
}

interface KeepaliveOptions {
  readonly clock: Clock;
  /** Period of the check. */
  readonly checkMs: number;
  /** A server that is silent for this time while unary calls are pending is pinged. */
  readonly silenceMs: number;
  /** Silence limit while only streams are open, which may be idle for long. */
  readonly streamSilenceMs: number;
  /** The connection is closed when a ping is not answered within this time. */
  readonly pingTimeoutMs: number;
  /** The least time between pings: servers treat more frequent ones as abuse. */
  readonly leastPingMs: number;
}

/** Pings a server that is silent while calls are pending. One for each connection. */
export class Keepalive {
  readonly #options: KeepaliveOptions | undefined;
  readonly #ping: (answered: () => void) => void;
  readonly #onSilent: () => void;
  #timer: Timer | undefined;
  /** Unary calls with an outstanding response. */
  #calls = 0;
  #streams = 0;
  /** Time of the last received data, or of the first outstanding call. */
  #heardAt = Number.NEGATIVE_INFINITY;
  #pingedAt = Number.NEGATIVE_INFINITY;
  #isAnswered = true;

  /**
   * @param options undefined: no pings
   * @param ping sends a ping, and calls `answered` when the server has answered
   * @param onSilent called when the server does not answer
   */
  constructor(options: KeepaliveOptions | undefined, ping: (answered: () => void) => void, onSilent: () => void) {
    this.#options = options;
    this.#ping = ping;
    this.#onSilent = onSilent;
  }

  start(): void {
    this.#timer = this.#options?.clock.every(this.#options.checkMs, () => this.#check());
  }

  stop(): void {
    this.#timer?.cancel();
  }

  heard(): void {
    if (this.#options !== undefined) this.#heardAt = this.#options.clock.monotonic();
  }

  callBegan(): void {
    if (this.#calls++ > 0 || this.#options === undefined) return;
    // Time before the first call does not count as silence, because the server has no reason to send anything.
    const { clock, silenceMs } = this.#options;
    this.#heardAt = Math.max(this.#heardAt, clock.monotonic() - silenceMs / 2);
  }

  callEnded(): void {
    this.#calls--;
  }

  streamBegan(): void {
    this.#streams++;
  }

  streamEnded(): void {
    this.#streams--;
  }

  #check(): void {
    const { clock, silenceMs, streamSilenceMs, pingTimeoutMs, leastPingMs } = this.#options!;
    const now = clock.monotonic();
    if (!this.#isAnswered && now - this.#pingedAt >= pingTimeoutMs) {
      this.stop();
      this.#onSilent();
      return;
    }
    if (this.#calls === 0 && this.#streams === 0) return;
    const patienceMs = this.#calls > 0 ? silenceMs : streamSilenceMs;
    if (!this.#isAnswered || now - this.#heardAt < patienceMs || now - this.#pingedAt < leastPingMs) return;
    this.#pingedAt = now;
    this.#isAnswered = false;
    this.#ping(() => {
      this.#isAnswered = true;
    });
  }
}
