import { protocolError } from "../wire/connection-error.ts";
import { checkFrame } from "../wire/frame-rules.ts";
import { flags, frameTypes, headerFragment, newFrameReader, unpadded } from "../wire/frames.ts";
import { GatheredBytes } from "../wire/gathered-bytes.ts";
import { newStaticFieldsDecoder } from "../wire/hpack-static-decoder.ts";
import type { Fields } from "./stream.ts";

/** Receives the server's frames. Each method may throw a ConnectionError, which ends the connection. */
export interface ServerFrames {
  /** A complete header block: headers or trailers. */
  onFields(stream: number, fields: Fields, ends: boolean): void;
  /** @param windowBytes size for flow control, padding included */
  onData(stream: number, data: Buffer, windowBytes: number, ends: boolean): void;
  /** @param code of RST_STREAM */
  onReset(stream: number, code: number): void;
  onSetting(id: number, value: number): void;
  /** All settings of one frame were reported. */
  onSettings(): void;
  onPing(payload: Buffer): void;
  /** The server has acknowledged a PING. */
  onPong(): void;
  /** @param last the last stream that the server may have processed */
  onGoAway(last: number, code: number): void;
  onWindowUpdate(stream: number, increment: number): void;
}

const mostHeaderBytes = 1024 * 1024;

/**
 * Parses the server's frames and checks what does not depend on the state of streams. The header table size announced to the
 * server has to be 0.
 * Source: RFC 9113, sections 3.4, 4 and 6
 */
export class ClientInput {
  readonly #receiver: ServerFrames;
  readonly #decode = newStaticFieldsDecoder();
  readonly #read: (chunk: Buffer) => void;
  #hasSettings = false;
  /** A header block that awaits CONTINUATION frames, with the flags of its HEADERS frame. */
  #block: { readonly stream: number; readonly flag: number; readonly bytes: GatheredBytes } | undefined;

  constructor(receiver: ServerFrames) {
    this.#receiver = receiver;
    this.#read = newFrameReader((type, flag, stream, payload) => this.#onFrame(type, flag, stream, payload));
  }

  /** @throws ConnectionError or HpackError for invalid input */
  take(chunk: Buffer): void {
    this.#read(chunk);
  }

  #onFrame(type: number, flag: number, stream: number, payload: Buffer): void {
    if (this.#block !== undefined && (type !== frameTypes.continuation || stream !== this.#block.stream)) {
      throw protocolError("a frame within headers");
    }
    if (!this.#hasSettings && type !== frameTypes.settings) throw protocolError("no settings come first");
    checkFrame(type, stream, payload.length);
    switch (type) {
      case frameTypes.data:
        this.#receiver.onData(stream, unpadded(flag, payload), payload.length, (flag & flags.endStream) !== 0);
        break;
      case frameTypes.headers:
        this.#onHeaders(stream, flag, payload);
        break;
      case frameTypes.continuation:
        this.#onContinuation(flag, payload);
        break;
      case frameTypes.resetStream:
        this.#receiver.onReset(stream, payload.readUInt32BE(0));
        break;
      case frameTypes.settings:
        this.#onSettings(flag, payload);
        break;
      case frameTypes.ping:
        if ((flag & flags.ack) === 0) this.#receiver.onPing(payload);
        else this.#receiver.onPong();
        break;
      case frameTypes.goAway:
        this.#receiver.onGoAway(payload.readUInt32BE(0) & 0x7fffffff, payload.readUInt32BE(4));
        break;
      case frameTypes.windowUpdate:
        this.#receiver.onWindowUpdate(stream, payload.readUInt32BE(0) & 0x7fffffff);
        break;
      case frameTypes.pushPromise:
        throw protocolError("a push that was forbidden");
    } // PRIORITY and unknown types have no effect
  }

  #onHeaders(stream: number, flag: number, payload: Buffer): void {
    const part = headerFragment(flag, payload);
    if ((flag & flags.endHeaders) !== 0) {
      this.#receiver.onFields(stream, this.#decode(part), (flag & flags.endStream) !== 0);
      return;
    }
    this.#block = { stream, flag, bytes: new GatheredBytes() };
    this.#gather(this.#block.bytes, part);
  }

  #onContinuation(flag: number, payload: Buffer): void {
    const block = this.#block;
    if (block === undefined) throw protocolError("headers go on that did not begin");
    this.#gather(block.bytes, payload);
    if ((flag & flags.endHeaders) === 0) return;
    this.#block = undefined;
    this.#receiver.onFields(block.stream, this.#decode(block.bytes.take()), (block.flag & flags.endStream) !== 0);
  }

  #gather(bytes: GatheredBytes, part: Buffer): void {
    bytes.push(part);
    if (bytes.size > mostHeaderBytes) throw protocolError(`headers of ${bytes.size} bytes`);
  }

  #onSettings(flag: number, payload: Buffer): void {
    if ((flag & flags.ack) !== 0) return;
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      this.#receiver.onSetting(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
    }
    this.#hasSettings = true;
    this.#receiver.onSettings();
  }
}
