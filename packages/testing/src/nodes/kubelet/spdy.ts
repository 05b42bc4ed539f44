import { type Duplex, PassThrough, type Readable } from "node:stream";
import { constants, createDeflate, createInflate, type Deflate, type Inflate } from "node:zlib";
import { spdyDictionary } from "./spdy-dictionary.ts";

/** Server side of SPDY/3.1 as kubectl speaks it: the client opens streams; no push, no flow control. Source: SPDY protocol, draft 3.1 */

const frame = { synStream: 1, synReply: 2, rstStream: 3, ping: 6, goAway: 7 } as const;
const finFlag = 1;
const longestFrame = 1 << 20;
const longestHeaders = 1 << 16;

/** A stream opened by the client. */
export interface SpdyStream {
  readonly headers: ReadonlyMap<string, string>;
  /** Data from the client; ends when it closes its side. */
  readonly input: Readable;
  /** @returns resolves when more may be written (backpressure) */
  write(chunk: Uint8Array): Promise<void>;
  /** Closes the server's side. */
  end(): Promise<void>;
}

/** The server side of a SPDY/3.1 connection, as kubectl uses for exec, attach and port-forward. */
export class SpdyConnection {
  readonly #socket: Duplex;
  readonly #inputs = new Map<number, PassThrough>();
  readonly #inflate: Inflate = createInflate({ dictionary: spdyDictionary, finishFlush: constants.Z_SYNC_FLUSH });
  readonly #deflate: Deflate = createDeflate({ dictionary: spdyDictionary, flush: constants.Z_SYNC_FLUSH });

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  /** Serves the connection until it ends. @throws Error for invalid SPDY */
  async serve(opened: (stream: SpdyStream) => void): Promise<void> {
    let rest: Buffer = Buffer.alloc(0);
    try {
      for await (const chunk of this.#socket as AsyncIterable<Buffer>) {
        rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
        while (rest.length >= 8) {
          const end = 8 + rest.readUIntBE(5, 3);
          if (end > longestFrame) throw new Error(`SPDY: a frame of ${end} bytes`);
          if (rest.length < end) break;
          await this.#take(rest.subarray(0, end), opened);
          rest = rest.subarray(end);
        }
      }
    } finally {
      for (const input of this.#inputs.values()) input.end();
      this.#inflate.close();
      this.#deflate.close();
    }
  }

  async #take(bytes: Buffer, opened: (stream: SpdyStream) => void): Promise<void> {
    const isLast = ((bytes[4] as number) & finFlag) !== 0;
    const first = bytes.readUInt32BE(0);
    if (first < 0x8000_0000) {
      const input = this.#inputs.get(first);
      if (input === undefined || input.writableEnded) return; // a stream that the client has not opened or has already closed
      if (bytes.length > 8 && !input.write(bytes.subarray(8))) await untilDrained(input);
      if (isLast) input.end();
      return;
    }
    const type = first & 0xffff;
    if (type === frame.ping) await this.#send(bytes);
    else if (type === frame.rstStream && bytes.length >= 12) this.#inputs.get(bytes.readUInt32BE(8))?.end();
    else if (type === frame.synStream) {
      if (bytes.length < 18) throw new Error("SPDY: a short SYN_STREAM");
      await this.#open(bytes.readUInt32BE(8) & 0x7fff_ffff, bytes.subarray(18), isLast, opened);
    }
  }

  async #open(id: number, block: Buffer, isLast: boolean, opened: (stream: SpdyStream) => void): Promise<void> {
    const headers = headersOf(await flushed(this.#inflate, block));
    const input = new PassThrough();
    this.#inputs.set(id, input);
    if (isLast) input.end();
    // The reply has no headers: a header count of 0.
    const none = await flushed(this.#deflate, Buffer.alloc(4));
    await this.#send(control(frame.synReply, idBytes(id), none));
    opened({
      headers,
      input,
      write: (chunk) => this.#send(data(id, 0, chunk)),
      end: () => this.#send(data(id, finFlag)),
    });
  }

  async #send(bytes: Uint8Array): Promise<void> {
    if (!this.#socket.destroyed && this.#socket.writable && !this.#socket.write(bytes)) await untilDrained(this.#socket);
  }
}

/** Resolves when a stream accepts more data, or is destroyed. */
export function untilDrained(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off("drain", done).off("close", done);
      resolve();
    };
    if (stream.destroyed || !stream.writableNeedDrain) return resolve();
    stream.on("drain", done).on("close", done);
  });
}

/** All header blocks of a connection share one compression context. */
function flushed(codec: Inflate | Deflate, block: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    codec.once("error", reject);
    const chunks: Buffer[] = [];
    let size = 0;
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > longestHeaders) codec.destroy(new Error("SPDY: the headers are too long"));
      chunks.push(chunk);
    };
    codec.on("data", take);
    codec.write(block, () => {
      codec.off("data", take).off("error", reject);
      resolve(Buffer.concat(chunks));
    });
  });
}

function headersOf(block: Buffer): ReadonlyMap<string, string> {
  let at = 0;
  const number = (): number => {
    if (at + 4 > block.length) throw new Error("SPDY: short headers");
    at += 4;
    return block.readUInt32BE(at - 4);
  };
  const text = (): string => {
    const length = number();
    if (at + length > block.length) throw new Error("SPDY: short headers");
    at += length;
    return block.toString("utf8", at - length, at);
  };
  const headers = new Map<string, string>();
  for (let left = number(); left > 0; left--) headers.set(text().toLowerCase(), text());
  return headers;
}

function idBytes(id: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(id);
  return bytes;
}

function control(type: number, ...parts: Uint8Array[]): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(0x8003_0000 + type);
  head.writeUIntBE(
    parts.reduce((sum, { length }) => sum + length, 0),
    5,
    3,
  );
  return Buffer.concat([head, ...parts]);
}

function data(id: number, flags: number, chunk: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(id);
  head[4] = flags;
  head.writeUIntBE(chunk.length, 5, 3);
  return Buffer.concat([head, chunk]);
}
