import type { ClientStream, Fields, StreamEnd, StreamHandlers } from "../http2/client/stream.ts";
import type { GrpcMethod } from "./calls.ts";
import { asCallError, GrpcError, grpcCodes } from "./grpc-error.ts";
import { framedMessage, MessageTooLarge, newMessageReader } from "./messages.ts";
import { codeOf, failureOf, isStatus, noFields } from "./status.ts";

export interface GrpcStreamHandlers {
  /** @param message a view on memory that is not reused; may be kept */
  message(message: Buffer): void;
  /** The last call, exactly once unless the stream is cancelled. @param err undefined for status OK */
  ended(err: GrpcError | undefined): void;
}

export interface MessageStreamOptions {
  readonly mostMessageBytes: number;
  readonly observer?: GrpcMethod | undefined;
  /** Called when the stream is over, however it ends. */
  readonly onOver?: () => void;
}

/** A call whose requests and responses are streams of messages. */
export class MessageStream implements StreamHandlers {
  readonly isPaced = true;
  readonly #handlers: GrpcStreamHandlers;
  readonly #options: MessageStreamOptions;
  readonly #read: (chunk: Buffer) => void;
  #stream: ClientStream | undefined;
  /** Messages written before the call was started. */
  #early: { readonly message: Uint8Array; readonly sent: (() => void) | undefined }[] = [];
  #hasEnded = false;
  #isPaused = false;
  /** Bytes received while paused, which are not yet returned to the window. */
  #owed = 0;
  #status = noFields;
  #isOver = false;

  constructor(handlers: GrpcStreamHandlers, options: MessageStreamOptions) {
    this.#handlers = handlers;
    this.#options = options;
    this.#read = newMessageReader((message) => {
      if (this.#isOver) return;
      options.observer?.received();
      handlers.message(message);
    }, options.mostMessageBytes);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** @param open opens the call's HTTP/2 stream with the given handlers */
  start(open: (handlers: StreamHandlers) => ClientStream): void {
    if (this.#isOver) return;
    this.#stream = open(this);
    this.#options.observer?.started();
    for (const { message, sent } of this.#early.splice(0)) this.write(message, sent);
    if (this.#hasEnded) this.#stream.end();
  }

  /**
   * Buffered until the call is started.
   * @param sent called when flow control has admitted the message, or the call is over
   */
  write(message: Uint8Array, sent?: () => void): void {
    if (this.#isOver) {
      sent?.();
      return;
    }
    if (this.#stream === undefined) {
      this.#early.push({ message, sent });
      return;
    }
    this.#options.observer?.sent();
    this.#stream.write(framedMessage(message), sent);
  }

  /** No request follows; responses go on. */
  end(): void {
    this.#hasEnded = true;
    this.#stream?.end();
  }

  /** Stops the server by flow control; messages that are on their way are still delivered. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    const owed = this.#owed;
    this.#owed = 0;
    if (owed > 0) this.#stream?.consumed(owed);
  }

  /** No handler is called afterwards. */
  cancel(): void {
    if (this.#isOver) return;
    this.#settle();
    this.#stream?.cancel();
  }

  /** Ends a call that could not be started. */
  fail(err: GrpcError): void {
    if (this.#isOver) return;
    this.#settle();
    this.#handlers.ended(err);
  }

  fields(fields: Fields): void {
    if (isStatus(fields)) this.#status = fields;
  }

  data(bytes: Buffer): void {
    if (this.#isPaused) this.#owed += bytes.length;
    else this.#stream?.consumed(bytes.length);
    try {
      this.#read(bytes);
    } catch (err) {
      const failure =
        err instanceof MessageTooLarge
          ? new GrpcError(grpcCodes.resourceExhausted, `grpc: ${err.message}`, { cause: err })
          : asCallError(err); // of the handler, which could not decode the message
      this.#options.observer?.handled(failure.code);
      this.#stream?.cancel();
      this.fail(failure);
    }
  }

  closed(end: StreamEnd): void {
    if (this.#isOver) return;
    this.#options.observer?.handled(codeOf(this.#status));
    this.#settle();
    this.#handlers.ended(failureOf(this.#status, end));
  }

  #settle(): void {
    this.#isOver = true;
    for (const { sent } of this.#early.splice(0)) sent?.();
    this.#options.onOver?.();
  }
}
