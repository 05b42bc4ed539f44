/** Low-level HTTP/2 client for tests: sends exactly the given frames, valid or not, and records every received frame. */
import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";
import {
  defaultWindowBytes,
  flags,
  frame,
  frameTypes,
  headBytes,
  newFrameReader,
  preface,
  settings as settingIds,
  settingsFrame,
  unpadded,
} from "../wire/frames.ts";
import { newFieldsDecoder } from "../wire/hpack.ts";
import { dataFrame, errorNames, pingFrame, windowFrame } from "./raw-frames.ts";

export interface RawClientOptions {
  readonly port: number;
  /** CA certificate, PEM. */
  readonly ca: string;
  /** Values of the first SETTINGS frame. */
  readonly settings?: readonly (readonly [id: number, value: number])[];
  /** Increment of the connection's window, sent at the start. */
  readonly moreWindow?: number;
  /** Sends neither preface nor SETTINGS nor acknowledgements by itself. */
  readonly isSilent?: boolean;
}

interface Frame {
  readonly type: number;
  readonly flag: number;
  readonly stream: number;
  readonly payload: Buffer;
  /** Decoded fields of HEADERS and its CONTINUATION frames: name, value, name, value … */
  readonly fields?: readonly string[];
}

interface Answer {
  readonly status: number;
  /** The last value of each name. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

/** Same as the timeout of `waitFor`: generous, for busy machines. */
const patienceMs = 60_000;

/** @throws Error when there is no TLS connection, or the server does not choose `h2` */
export async function connectRaw(options: RawClientOptions): Promise<RawClient> {
  const socket = connect({ host: "127.0.0.1", port: options.port, ca: options.ca, ALPNProtocols: ["h2"] });
  await once(socket, "secureConnect");
  socket.setNoDelay(true);
  if (socket.alpnProtocol !== "h2") throw new Error(`the server speaks ${socket.alpnProtocol}`);
  const client = new RawClient(socket, options.isSilent === true);
  if (options.isSilent !== true) client.send(preface, settingsFrame(options.settings ?? []));
  if (options.moreWindow !== undefined) client.send(windowFrame(0, options.moreWindow));
  return client;
}

/** A client that sends frames as given, valid or not, and records the server's frames, for tests of the server's reaction. */
export class RawClient {
  readonly socket: TLSSocket;
  /** All received frames, in order. */
  readonly frames: Frame[] = [];
  /** The connection's send window, in bytes. */
  connectionCredit = defaultWindowBytes;
  /** The server's SETTINGS, by id. */
  readonly serverSettings = new Map<number, number>();
  isClosed = false;
  readonly #isSilent: boolean;
  readonly #seen = new Set<Frame>();
  readonly #waiting = new Set<() => void>();
  readonly #streamCredits = new Map<number, number>();
  readonly #decoder = newFieldsDecoder();
  #head: { stream: number; flag: number; parts: Buffer[] } | undefined;
  #pings = 0;

  constructor(socket: TLSSocket, isSilent: boolean) {
    this.socket = socket;
    this.#isSilent = isSilent;
    const read = newFrameReader((type, flag, stream, payload) => this.#onFrame({ type, flag, stream, payload }));
    socket.on("data", read);
    socket.on("error", () => {}); // a close event follows, which tests check
    socket.once("close", () => {
      this.isClosed = true;
      this.#wake();
    });
  }

  send(...chunks: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(chunks));
  }

  /** Sends the chunk `times` times, with backpressure; stops when the connection ends. @returns the number of chunks sent */
  async flood(chunk: Buffer, times: number): Promise<number> {
    for (let sent = 0; sent < times; sent++) {
      if (this.isClosed || !this.socket.writable) return sent;
      if (this.socket.write(chunk)) continue;
      await this.until(() => !this.socket.writableNeedDrain || this.isClosed, "room for more of a flood");
    }
    return times;
  }

  /** The next frame of this type that was not returned before. @throws Error on timeout or when the connection ends */
  async next(type: keyof typeof frameTypes, stream?: number): Promise<Frame> {
    const number = frameTypes[type];
    const find = (): Frame | undefined =>
      this.frames.find((one) => one.type === number && (stream === undefined || one.stream === stream) && !this.#seen.has(one));
    const what = `${type}${stream === undefined ? "" : ` of ${stream}`}`;
    await this.until(() => find() !== undefined || this.isClosed, what);
    const found = find();
    if (found === undefined) throw new Error(`the connection ended before ${what}: ${this.shown()}`);
    this.#seen.add(found);
    return found;
  }

  /** Round trip of a PING: the server has processed everything sent before. */
  async ping(): Promise<void> {
    const text = `raw${String(++this.#pings).padStart(5, "0")}`;
    this.send(pingFrame(text));
    const isAnswer = (one: Frame): boolean =>
      one.type === frameTypes.ping && one.flag === flags.ack && one.payload.toString("latin1") === text;
    await this.until(() => this.frames.findLast(isAnswer) !== undefined || this.isClosed, "the answer of a PING");
    if (this.frames.findLast(isAnswer) === undefined) throw new Error(`the connection ended: ${this.shown()}`);
  }

  /** @returns the complete response @throws Error when the stream is reset or the connection ends */
  async answer(stream: number): Promise<Answer> {
    await this.until(
      () => this.isWhole(stream) || this.resetCode(stream) !== undefined || this.isClosed,
      `an answer on ${stream}`,
    );
    if (!this.isWhole(stream)) throw new Error(`the answer on ${stream} broke off: ${this.shown()}`);
    const headers = new Map<string, string>();
    for (const { fields = [] } of this.of("headers", stream)) {
      for (let i = 0; i < fields.length; i += 2) headers.set(fields[i] as string, fields[i + 1] as string);
    }
    return { status: Number(headers.get(":status")), headers, body: this.body(stream) };
  }

  /** The outcome of a request: `status 200`, `stream REFUSED_STREAM`, `connection PROTOCOL_ERROR`, `connection closed`. */
  async outcome(stream: number): Promise<string> {
    const isAnswered = (): boolean => this.isWhole(stream) || this.resetCode(stream) !== undefined;
    await this.until(() => isAnswered() || this.#failure() !== undefined, `anything on ${stream}`);
    if (isAnswered()) {
      const code = this.resetCode(stream);
      const said =
        code === undefined || this.isWhole(stream) ? `status ${(await this.answer(stream)).status}` : `stream ${nameOf(code)}`;
      // If the connection ends as well, that outcome takes precedence.
      if (await this.isAlive()) return said;
    }
    return this.end();
  }

  /** False when the server closed the connection or does not acknowledge a PING. */
  async isAlive(): Promise<boolean> {
    return this.ping().then(
      () => this.#failure() === undefined,
      () => false,
    );
  }

  /** Waits for the end of the connection. @returns `connection PROTOCOL_ERROR`, or `connection closed` without a GOAWAY */
  async end(): Promise<string> {
    await this.until(() => this.isClosed, "the end of the connection");
    return this.#failure() as string;
  }

  /** Sends a body within the server's flow-control windows. */
  async upload(stream: number, body: Buffer, more: { readonly endStream?: boolean } = {}): Promise<void> {
    for (let at = 0; at < body.length; ) {
      await this.until(() => this.#room(stream) > 0 || this.isClosed, `room to send on ${stream}`);
      if (this.isClosed) throw new Error(`the connection ended during an upload: ${this.shown()}`);
      const part = body.subarray(at, at + Math.min(16_384, this.#room(stream)));
      at += part.length;
      this.sendData(stream, dataFrame(stream, part));
    }
    if (more.endStream !== false) this.send(dataFrame(stream, "", flags.endStream));
  }

  /** Sends DATA and subtracts it from the windows. `data` is one whole frame unless `size` gives its flow-controlled bytes. */
  sendData(stream: number, data: Buffer, size = data.length - headBytes): void {
    this.connectionCredit -= size;
    this.#streamCredits.set(stream, this.streamCredit(stream) - size);
    this.send(data);
  }

  /** The send window of a stream, in bytes. */
  streamCredit(stream: number): number {
    return this.#streamCredits.get(stream) ?? this.serverSettings.get(settingIds.initialWindowSize) ?? defaultWindowBytes;
  }

  #room(stream: number): number {
    // Unknown until the server's SETTINGS are received.
    return this.serverSettings.size === 0 ? 0 : Math.min(this.connectionCredit, this.streamCredit(stream));
  }

  of(type: keyof typeof frameTypes, stream?: number): Frame[] {
    return this.frames.filter((one) => one.type === frameTypes[type] && (stream === undefined || one.stream === stream));
  }

  /** The response body received so far. */
  body(stream: number): Buffer {
    return Buffer.concat(this.of("data", stream).map(({ flag, payload }) => unpadded(flag, payload)));
  }

  isWhole(stream: number): boolean {
    return this.frames.some((one) => one.stream === stream && one.type < 2 && (one.flag & flags.endStream) !== 0);
  }

  resetCode(stream: number): number | undefined {
    return this.of("resetStream", stream).at(0)?.payload.readUInt32BE(0);
  }

  /** @throws Error when the condition does not hold within the timeout */
  async until(condition: () => boolean, what: string, timeoutMs = patienceMs): Promise<void> {
    if (condition()) return;
    await new Promise<void>((resolve, reject) => {
      const done = (settle: () => void): void => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        this.socket.off("drain", look);
        settle();
      };
      const look = (): void => {
        if (condition()) done(resolve);
      };
      const timer = setTimeout(
        () => done(() => reject(new Error(`waited ${timeoutMs} ms for ${what}: ${this.shown()}`))),
        timeoutMs,
      );
      this.#waiting.add(look);
      this.socket.on("drain", look);
    });
  }

  #onFrame({ type, flag, stream, payload }: Frame): void {
    if (type === frameTypes.headers || type === frameTypes.continuation) this.#onHead(type, flag, stream, payload);
    else this.frames.push({ type, flag, stream, payload });
    if (type === frameTypes.settings && (flag & flags.ack) === 0) this.#onSettings(payload);
    if (type === frameTypes.windowUpdate) {
      const increment = payload.readUInt32BE(0);
      if (stream === 0) this.connectionCredit += increment;
      else this.#streamCredits.set(stream, this.streamCredit(stream) + increment);
    }
    this.#wake();
  }

  #onHead(type: number, flag: number, stream: number, payload: Buffer): void {
    if (type === frameTypes.headers) this.#head = { stream, flag, parts: [unpadded(flag, payload)] };
    else this.#head?.parts.push(payload);
    if (this.#head?.stream !== stream) throw new Error("the server continues what it did not begin");
    if ((flag & flags.endHeaders) === 0) return;
    const block = Buffer.concat(this.#head.parts);
    this.frames.push({
      type: frameTypes.headers,
      flag: this.#head.flag | flags.endHeaders,
      stream,
      payload: block,
      fields: this.#decoder.decode(block).fields,
    });
    this.#head = undefined;
  }

  #onSettings(payload: Buffer): void {
    for (let at = 0; at < payload.length; at += 6) {
      const id = payload.readUInt16BE(at);
      const value = payload.readUInt32BE(at + 2);
      if (id === settingIds.initialWindowSize) {
        const change = value - (this.serverSettings.get(id) ?? defaultWindowBytes);
        for (const [stream, credit] of this.#streamCredits) this.#streamCredits.set(stream, credit + change);
      }
      this.serverSettings.set(id, value);
    }
    if (!this.#isSilent) this.send(frame(frameTypes.settings, flags.ack, 0, Buffer.alloc(0)));
  }

  /** The error of the server's GOAWAY or the closed connection, if any. */
  #failure(): string | undefined {
    const codes = this.of("goAway").map(({ payload }) => payload.readUInt32BE(4));
    const code = codes.find((one) => one !== 0);
    if (code !== undefined) return `connection ${nameOf(code)}`;
    return this.isClosed ? "connection closed" : undefined;
  }

  #wake(): void {
    for (const look of this.#waiting) look();
  }

  /** The most recent frames, for error messages. */
  shown(): string {
    const names = Object.entries(frameTypes);
    const shown = this.frames.slice(-20).map(({ type, flag, stream, payload }) => {
      const name = names.find(([, number]) => number === type)?.[0] ?? type;
      return `${name}(stream ${stream}, flags ${flag}, ${payload.length} bytes: ${payload.toString("hex", 0, 12)})`;
    });
    return `${this.isClosed ? "closed; " : ""}${shown.join(", ")}`;
  }
}

function nameOf(code: number): string {
  return errorNames[code] ?? String(code);
}
