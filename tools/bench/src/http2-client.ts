import { once } from "node:events";
import type { OnReadOpts } from "node:net";
import { type ConnectionOptions, connect } from "node:tls";
import { flags, frame, frameTypes, settings } from "@coxswain/apimachinery/http2/wire/frames";
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

export interface Http2Request {
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
    buffer: Buffer.alloc(readBytes), // reused, to avoid garbage collection
    callback(length, buffer) {
      read((buffer as Buffer).subarray(0, length));
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
  const answers = new Map<number, AnswerHandlers>();
  /** Requests waiting for the stream limit or the connection's window. */
  const waiting: [Http2Request, AnswerHandlers][] = [];
  let nextStream = 1;
  let taken = 0;
  let window = defaultWindowBytes;
  let streamWindow = defaultWindowBytes;
  let mostStreams = Number.POSITIVE_INFINITY;
  let closed: Error | undefined;

  let out: Buffer[] = [];
  const write = (bytes: Buffer): void => {
    if (out.push(bytes) === 1) process.nextTick(flush);
  };
  const flush = (): void => {
    const all = out.length === 1 ? (out[0] as Buffer) : Buffer.concat(out);
    out = [];
    if (!socket.destroyed) socket.write(all);
  };

  const before = rememberedBy((method: string) => encodeMethod(method, host), new Map());
  const after = rememberedBy(
    (headers: Http2Request["headers"]) => encodeHeaders({ authorization: `Bearer ${token}`, ...headers }),
    new WeakMap(),
  );
  const hasRoom = ({ body }: Http2Request): boolean => answers.size < mostStreams && (body?.length ?? 0) <= window;
  const open = (request: Http2Request, answer: AnswerHandlers): void => {
    const { method, path, headers, body } = request;
    const stream = nextStream;
    nextStream += 2;
    answers.set(stream, answer);
    window -= body?.length ?? 0;
    for (const bytes of encodeRequest(stream, { before: before(method), path, after: after(headers), body })) write(bytes);
  };
  const openWaiting = (): void => {
    for (let next = waiting[0]; next !== undefined && hasRoom(next[0]); next = waiting[0]) {
      waiting.shift();
      open(...next);
    }
  };
  const end = (stream: number, tell: (answer: AnswerHandlers) => void): void => {
    const answer = answers.get(stream);
    if (answer === undefined) return;
    answers.delete(stream);
    tell(answer);
    openWaiting();
  };
  const failAll = (why: string): void => {
    closed ??= new Error(why);
    for (const [, answer] of waiting.splice(0)) answer.failed(closed);
    for (const stream of [...answers.keys()]) end(stream, (answer) => answer.failed(closed as Error));
  };

  const onFrame = (received: Frame): void => {
    const { type, flags: flag, stream, payload } = received;
    const isLast = (flag & flags.endStream) !== 0;
    switch (type) {
      case frameTypes.headers:
        answers.get(stream)?.begun(statusOf(received));
        if (isLast) end(stream, (answer) => answer.ended());
        return;
      case frameTypes.data:
        end(stream, (answer) => answer.ended());
        return;
      case frameTypes.settings: {
        if ((flag & flags.ack) !== 0) return;
        const values = decodeSettings(received);
        streamWindow = values.get(settings.initialWindowSize) ?? streamWindow;
        mostStreams = values.get(settings.maxConcurrentStreams) ?? mostStreams;
        write(frame(type, flags.ack, 0, Buffer.alloc(0)));
        return;
      }
      case frameTypes.ping:
        if ((flag & flags.ack) === 0) write(frame(type, flags.ack, 0, payload));
        return;
      case frameTypes.windowUpdate:
        if (stream !== 0) return;
        window += payload.readUInt32BE(0);
        openWaiting();
        return;
      case frameTypes.resetStream:
        end(stream, (answer) => answer.failed(new Error("the server resets the stream")));
        return;
      case frameTypes.goAway:
        failAll("the server closes the connection");
    }
  };
  const onData = (stream: number, piece: Buffer): void => {
    answers.get(stream)?.data(piece);
    taken += piece.length;
    if (taken < windowStep) return;
    write(widen(taken));
    taken = 0;
  };
  read = newFrameReader(onFrame, onData);
  socket.on("error", (err) => failAll(err.message));
  socket.on("close", () => failAll("the connection is closed"));
  write(opening());
  return {
    send(request, answer) {
      if ((request.body?.length ?? 0) > streamWindow) throw new Error(`a body of ${request.body?.length} bytes is too large`);
      if (closed !== undefined) answer.failed(closed);
      else if (waiting.length === 0 && hasRoom(request)) open(request, answer);
      else waiting.push([request, answer]);
    },
    close: () => socket.destroy(),
  };
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
