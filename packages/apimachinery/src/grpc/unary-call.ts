import type { ClientStream, Fields, StreamEnd, StreamHandlers } from "../http2/client/stream.ts";
import type { GrpcMethod } from "./calls.ts";
import type { GrpcSession } from "./connector.ts";
import { GrpcError, grpcCodes } from "./grpc-error.ts";
import { framedMessage } from "./messages.ts";
import { codeOf, failureOf, isStatus, noFields, tooLarge } from "./status.ts";

export interface UnaryRequest {
  /** Encoded header fields. */
  readonly block: Buffer;
  readonly message: Buffer;
  readonly timeoutMs: number;
  readonly mostResponseBytes: number;
  readonly observer: GrpcMethod | undefined;
}

const headBytes = 5;

/** One call with one response. */
export class UnaryCall implements StreamHandlers {
  readonly #session: GrpcSession;
  readonly #request: UnaryRequest;
  readonly #resolve: (message: Buffer) => void;
  readonly #reject: (err: GrpcError) => void;
  readonly #stream: ClientStream;
  readonly #timer: NodeJS.Timeout;
  #status = noFields;
  #first: Buffer | undefined;
  #more: Buffer[] | undefined;
  #size = 0;

  /** @throws Error when the connection accepts no more calls */
  constructor(session: GrpcSession, request: UnaryRequest, resolve: (message: Buffer) => void, reject: (err: GrpcError) => void) {
    this.#session = session;
    this.#request = request;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#stream = session.connection.request(request.block, framedMessage(request.message), true, this);
    session.keepalive.callBegan();
    request.observer?.started();
    request.observer?.sent();
    this.#timer = setTimeout(expire, request.timeoutMs, this);
  }

  fields(fields: Fields): void {
    if (isStatus(fields)) this.#status = fields;
  }

  data(bytes: Buffer): void {
    this.#size += bytes.length;
    const { mostResponseBytes } = this.#request;
    if (this.#size > mostResponseBytes + headBytes) {
      this.#abort(tooLarge(this.#size - headBytes, mostResponseBytes));
      return;
    }
    if (this.#first === undefined) this.#first = bytes;
    else if (this.#more === undefined) this.#more = [this.#first, bytes];
    else this.#more.push(bytes);
  }

  closed(end: StreamEnd): void {
    this.#ended();
    const { observer } = this.#request;
    if (this.#first !== undefined) observer?.received();
    observer?.handled(codeOf(this.#status));
    const failure = failureOf(this.#status, end);
    if (failure !== undefined) this.#reject(failure);
    else this.#take(this.#more === undefined ? this.#first : Buffer.concat(this.#more, this.#size));
  }

  /** The deadline is over. */
  expire(): void {
    const cause = new Error(`no answer in ${this.#request.timeoutMs} ms`);
    this.#abort(new GrpcError(grpcCodes.deadlineExceeded, "context deadline exceeded", { cause }));
  }

  #take(body: Buffer | undefined): void {
    if (body === undefined || body.length < headBytes) this.#reject(malformed("without a message"));
    else if (body[0] !== 0) this.#reject(malformed("that is compressed"));
    else if (body.readUInt32BE(1) !== body.length - headBytes) this.#reject(malformed("whose length is wrong"));
    else this.#resolve(body.subarray(headBytes));
  }

  #abort(err: GrpcError): void {
    this.#ended();
    this.#stream.cancel();
    this.#request.observer?.handled(err.code);
    this.#reject(err);
  }

  #ended(): void {
    clearTimeout(this.#timer);
    this.#session.keepalive.callEnded();
  }
}

const expire = (call: UnaryCall): void => call.expire();

const malformed = (how: string): GrpcError => new GrpcError(grpcCodes.internal, `received a response ${how}`);
