import { once } from "node:events";
import type { OnReadOpts } from "node:net";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { flags, frame, frameTypes, settings } from "@coxswain/apimachinery/transport/http2/wire/frames";
import {
  decodeSettings,
  encodeHeaders,
  encodeMethod,
  encodeRequest,
  type Frame,
  newFrameReader,
  opening,
  statusOf,
  widen,
} from "./frames.ts";

/**
 * An HTTP/2 connection with minimal CPU cost. Node's client creates a stream with listeners and buffers per request, and would
 * compete for CPU with the measured server. Requests of one event-loop turn are sent in one write; received bytes are read
 * into one buffer and not copied.
 */
export interface Http2Client {
  /** @throws Error when the body exceeds the initial window of a stream */
  send(request: Http2Request, answer: AnswerHandlers): void;
  close(): void;
}

interface Http2Request {
  readonly method: string;
  readonly path: string;
  /** Lower-case names. Pass the same object for equal headers: its encoding is cached. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer | undefined;
}

/** Callbacks for a response; `ended` or `failed` is the last one. */
export interface AnswerHandlers {
  begun(status: number): void;
  /** @param piece valid only during the call */
  data(piece: Buffer): void;
  ended(): void;
  failed(err: Error): void;
}

/** Bytes received before a WINDOW_UPDATE for the connection is sent. */
const windowStep = 2 ** 28;
/** Read buffer size; larger than a TLS record. */
const readBytes = 64 * 1024;
/** Initial window before the server's SETTINGS. Source: RFC 9113, section 6.9.2 */
const defaultWindowBytes = 65_535;

/** Connects over TLS. @param ca PEM; undefined disables verification */
export async function openHttp2(url: string, token: string, ca: Buffer | undefined): Promise<Http2Client> {
  const { hostname, port, host } = new URL(url);
  let read: (chunk: Buffer) => void = () => {};
  const onread: OnReadOpts = {
    buffer: Buffer.alloc(readBytes), // reused, to reduce garbage collection
    callback(length, buffer) {
      read((buffer as Buffer).subarray(0, length)); // cast: the option of this server's socket
      return true;
    },
  };
  const options: ConnectionOptions & { onread: OnReadOpts } = {
    host: hostname,
    port: Number(port),
    ALPNProtocols: ["h2"],
    ...(ca === undefined ? { rejectUnauthorized: false } : { ca }),
    onread,
  };
  const socket = connect(options);
  await once(socket, "secureConnect");
  socket.setNoDelay(true);
  const connection = new Connection(socket, host, token);
  read = connection.reader();
  return connection;
}

class Connection implements Http2Client {
  readonly #socket: TLSSocket;
  readonly #before: (method: string) => Buffer;
  readonly #after: (headers: Http2Request["headers"]) => Buffer;
  readonly #answers = new Map<number, AnswerHandlers>();
  /** Requests waiting for the stream limit or the connection's window. */
  readonly #waiting: [Http2Request, AnswerHandlers][] = [];
  #out: Buffer[] = [];
  #nextStream = 1;
  #taken = 0;
  #window = defaultWindowBytes;
  #streamWindow = defaultWindowBytes;
  #mostStreams = Number.POSITIVE_INFINITY;
  #closed: Error | undefined;

  constructor(socket: TLSSocket, host: string, token: string) {
    this.#socket = socket;
    this.#before = rememberedBy((method: string) => encodeMethod(method, host), new Map());
    this.#after = rememberedBy(
      (headers: Http2Request["headers"]) => encodeHeaders({ authorization: `Bearer ${token}`, ...headers }),
      new WeakMap(), // keyed by identity: callers pass the same object for equal headers
    );
    socket.on("error", (err) => this.#failAll(err.message));
    socket.on("close", () => this.#failAll("the connection is closed"));
    this.#write(opening());
  }

  /** Returns the handler for received bytes. */
  reader(): (chunk: Buffer) => void {
    return newFrameReader(
      (frame) => this.#onFrame(frame),
      (stream, piece) => this.#onData(stream, piece),
    );
  }

  send(request: Http2Request, answer: AnswerHandlers): void {
    const size = request.body?.length ?? 0;
    if (size > this.#streamWindow) throw new Error(`a body of ${size} bytes is too large`);
    if (this.#closed !== undefined) answer.failed(this.#closed);
    else if (this.#waiting.length === 0 && this.#hasRoom(request)) this.#open(request, answer);
    else this.#waiting.push([request, answer]);
  }

  close(): void {
    this.#socket.destroy();
  }

  #write(bytes: Buffer): void {
    if (this.#out.push(bytes) === 1) process.nextTick(() => this.#flush());
  }

  #flush(): void {
    const all = this.#out.length === 1 ? this.#out[0]! : Buffer.concat(this.#out);
    this.#out = [];
    if (!this.#socket.destroyed) this.#socket.write(all);
  }

  #hasRoom({ body }: Http2Request): boolean {
    return this.#answers.size < this.#mostStreams && (body?.length ?? 0) <= this.#window;
  }

  #open({ method, path, headers, body }: Http2Request, answer: AnswerHandlers): void {
    const stream = this.#nextStream;
    this.#nextStream += 2;
    this.#answers.set(stream, answer);
    this.#window -= body?.length ?? 0;
    const parts = { before: this.#before(method), path, after: this.#after(headers), body };
    for (const bytes of encodeRequest(stream, parts)) this.#write(bytes);
  }

  #openWaiting(): void {
    for (let next = this.#waiting[0]; next !== undefined && this.#hasRoom(next[0]); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#open(...next);
    }
  }

  #end(stream: number, report: (answer: AnswerHandlers) => void): void {
    const answer = this.#answers.get(stream);
    if (answer === undefined) return;
    this.#answers.delete(stream);
    report(answer);
    this.#openWaiting();
  }

  #failAll(why: string): void {
    const reason = this.#closed ?? new Error(why);
    this.#closed = reason;
    for (const [, answer] of this.#waiting.splice(0)) answer.failed(reason);
    for (const stream of [...this.#answers.keys()]) this.#end(stream, (answer) => answer.failed(reason));
  }

  #onFrame(received: Frame): void {
    const { type, flags: flag, stream, payload } = received;
    const isLast = (flag & flags.endStream) !== 0;
    switch (type) {
      case frameTypes.headers:
        this.#answers.get(stream)?.begun(statusOf(received));
        if (isLast) this.#end(stream, (answer) => answer.ended());
        return;
      case frameTypes.data:
        this.#end(stream, (answer) => answer.ended());
        return;
      case frameTypes.settings: {
        if ((flag & flags.ack) !== 0) return;
        const values = decodeSettings(received);
        this.#streamWindow = values.get(settings.initialWindowSize) ?? this.#streamWindow;
        this.#mostStreams = values.get(settings.maxConcurrentStreams) ?? this.#mostStreams;
        this.#write(frame(type, flags.ack, 0, Buffer.alloc(0)));
        return;
      }
      case frameTypes.ping:
        if ((flag & flags.ack) === 0) this.#write(frame(type, flags.ack, 0, payload));
        return;
      case frameTypes.windowUpdate:
        if (stream !== 0) return;
        this.#window += payload.readUInt32BE(0);
        this.#openWaiting();
        return;
      case frameTypes.resetStream:
        this.#end(stream, (answer) => answer.failed(new Error("the server resets the stream")));
        return;
      case frameTypes.goAway:
        this.#failAll("the server closes the connection");
    }
  }

  #onData(stream: number, piece: Buffer): void {
    this.#answers.get(stream)?.data(piece);
    this.#taken += piece.length;
    if (this.#taken < windowStep) return;
    this.#write(widen(this.#taken));
    this.#taken = 0;
  }
}

/** Memoizes `make` in `known`. */
function rememberedBy<K, V>(make: (key: K) => V, known: { get(key: K): V | undefined; set(key: K, value: V): unknown }) {
  return (key: K): V => {
    let value = known.get(key);
    if (value === undefined) {
      value = make(key);
      known.set(key, value);
    }
    return value;
  };
}
