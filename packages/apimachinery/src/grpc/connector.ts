import type { Duplex } from "node:stream";
import { ClientConnection } from "../http2/client/connection.ts";
import { GrpcError, grpcCodes } from "./grpc-error.ts";
import { Keepalive, type KeepaliveOptions } from "./keepalive.ts";

/** An established connection. */
export interface GrpcSession {
  readonly connection: ClientConnection;
  readonly keepalive: Keepalive;
}

export interface ConnectorOptions {
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
export class Connector {
  readonly #options: ConnectorOptions;
  #session: GrpcSession | undefined;
  #connecting: Promise<GrpcSession> | undefined;
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
  current(): GrpcSession | Promise<GrpcSession> {
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

  /** New calls get another connection; calls on this one continue to their end. */
  drop(session: GrpcSession): void {
    if (this.#session === session) this.#session = undefined;
  }

  close(): void {
    this.#isClosed = true;
    this.#attempt?.abort(closedByUs);
    this.#session?.connection.destroy(new Error(closedByUs));
  }

  async #connect(): Promise<GrpcSession> {
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
      this.#reason = (err as Error).message;
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
  readonly #onGone: (session: GrpcSession) => void;
  readonly #result = Promise.withResolvers<GrpcSession>();
  #state: "connecting" | "ready" | "failed" = "connecting";
  #timer: NodeJS.Timeout | undefined;
  #session: GrpcSession | undefined;
  /** False when the server went away again before the connection could be used. */
  isUsable = true;

  /** @param onGone called when the connection takes no more calls */
  constructor(options: ConnectorOptions, onGone: (session: GrpcSession) => void) {
    this.#options = options;
    this.#onGone = onGone;
  }

  /** @throws Error with the reason */
  start(timeoutMs: number): Promise<GrpcSession> {
    this.#timer = setTimeout(() => this.abort("timed out"), timeoutMs);
    try {
      const dialled = this.#options.dial();
      if (!("then" in dialled)) this.#begin(dialled);
      else
        void dialled
          .then((socket) => (this.#state === "failed" ? socket.destroy() : this.#begin(socket)))
          .then(undefined, this.#failed);
    } catch (err) {
      this.#failed(err as Error);
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
    const session: GrpcSession = {
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
    // After a pause of the process the timer and the connection fire in the same event-loop turn: a failed attempt stays failed.
    if (this.#state === "failed") return;
    this.#state = "ready";
    const session = this.#session as GrpcSession;
    session.keepalive.start();
    this.#result.resolve(session);
  }

  #gone(session: GrpcSession): void {
    this.isUsable = false;
    this.#onGone(session);
  }

  readonly #failed = (err: Error): void => this.abort(err.message);
}
