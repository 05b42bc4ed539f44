import { frameSizeError, protocolError } from "../wire/connection-error.ts";
import { checkFrame } from "../wire/frame-rules.ts";
import { flags, frameTypes, headerFragment, newFrameReader, preface, unpadded } from "../wire/frames.ts";
import { type DecodedFields, type FieldsDecoder, newFieldsDecoder } from "../wire/hpack-decoder.ts";
import { HeaderBlock } from "./header-block.ts";

/** Receives valid frames. Each method may throw a ConnectionError, which ends the connection. */
export interface FrameReceiver {
  /** A complete header block. @param isWhole END_STREAM was set: no body follows */
  onHeaders(stream: number, isWhole: boolean, decoded: DecodedFields): void;
  /** @param windowBytes size for flow control, padding included */
  onData(stream: number, data: Buffer, windowBytes: number, ends: boolean): void;
  onReset(stream: number): void;
  onWindowUpdate(stream: number, increment: number): void;
  onSetting(id: number, value: number): void;
  /** All settings of one frame were reported. */
  onSettings(): void;
  onPing(payload: Buffer): void;
  onGoAway(): void;
  /** A frame without effect; also called for a PING and for repeated SETTINGS, before their own callback. */
  onIdleFrame(): void;
  /** The process holds too many incomplete header blocks and this connection's is the oldest. */
  onStalledHeaders(): void;
}

/**
 * Parses the client's preface and frames and checks what does not depend on the state of streams.
 * Source: RFC 9113, sections 3.4, 4 and 6
 */
export class ServerInput {
  readonly #receiver: FrameReceiver;
  readonly #maxHeaderBytes: number;
  readonly #decoder: FieldsDecoder;
  readonly #read: (chunk: Buffer) => void;
  /** The part of the preface that was not received yet. */
  #prefaceLeft = preface;
  #hasSettings = false;
  /** A header block that awaits CONTINUATION frames. */
  #block: HeaderBlock | undefined;
  #isClosed = false;

  constructor(receiver: FrameReceiver, maxHeaderBytes: number) {
    this.#receiver = receiver;
    this.#maxHeaderBytes = maxHeaderBytes;
    this.#decoder = newFieldsDecoder({ mostListBytes: maxHeaderBytes });
    this.#read = newFrameReader((type, flag, stream, payload) => this.#onFrame(type, flag, stream, payload));
  }

  /** Whether the client's preface and its first SETTINGS were received. */
  get hasBegun(): boolean {
    return this.#hasSettings;
  }

  /** When the incomplete header block began, as `performance.now()`; undefined without one. */
  get headersSince(): number | undefined {
    return this.#block?.since;
  }

  /** @throws ConnectionError or HpackError for invalid input */
  take(chunk: Buffer): void {
    if (this.#isClosed) return;
    const rest = this.#prefaceLeft.length === 0 ? chunk : this.#afterPreface(chunk);
    if (rest.length > 0) this.#read(rest);
  }

  /** Ignores further input. */
  close(): void {
    this.#isClosed = true;
    this.#block?.drop();
    this.#block = undefined;
  }

  #afterPreface(chunk: Buffer): Buffer {
    const length = Math.min(chunk.length, this.#prefaceLeft.length);
    if (chunk.compare(this.#prefaceLeft, 0, length, 0, length) !== 0) throw protocolError("the preface is wrong");
    this.#prefaceLeft = this.#prefaceLeft.subarray(length);
    return chunk.subarray(length);
  }

  #onFrame(type: number, flag: number, stream: number, payload: Buffer): void {
    if (this.#isClosed) return;
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
        this.#receiver.onReset(stream);
        break;
      case frameTypes.settings:
        this.#onSettings(flag, payload);
        break;
      case frameTypes.ping:
        this.#receiver.onIdleFrame();
        if ((flag & flags.ack) === 0) this.#receiver.onPing(payload);
        break;
      case frameTypes.goAway:
        this.#receiver.onGoAway();
        break;
      case frameTypes.windowUpdate:
        this.#receiver.onWindowUpdate(stream, payload.readUInt32BE(0) & 0x7fffffff);
        break;
      case frameTypes.pushPromise:
        throw protocolError("a push of a client");
      default: // PRIORITY, which RFC 9113 deprecates, and unknown types
        this.#receiver.onIdleFrame();
    }
  }

  #onHeaders(stream: number, flag: number, payload: Buffer): void {
    if (stream % 2 === 0) throw protocolError("a stream that is not the client's");
    const part = headerFragment(flag, payload);
    if ((flag & flags.endHeaders) !== 0) {
      this.#endOfHeaders(stream, flag, part);
      return;
    }
    // A moderately oversized block is decoded, so that the request is answered with 431.
    this.#block = new HeaderBlock(stream, flag, 2 * this.#maxHeaderBytes, () => this.#receiver.onStalledHeaders());
    this.#block.add(part);
  }

  #onContinuation(flag: number, payload: Buffer): void {
    const block = this.#block;
    if (block === undefined) throw protocolError("headers go on that did not begin");
    block.add(payload);
    if ((flag & flags.endHeaders) === 0 || this.#isClosed) return;
    this.#block = undefined;
    this.#endOfHeaders(block.stream, block.flags, block.take());
  }

  #endOfHeaders(stream: number, flag: number, block: Buffer): void {
    // Decoded even when the stream is refused: every block updates the dynamic table.
    const decoded = this.#decoder.decode(block);
    this.#receiver.onHeaders(stream, (flag & flags.endStream) !== 0, decoded);
  }

  #onSettings(flag: number, payload: Buffer): void {
    const isAck = (flag & flags.ack) !== 0;
    if (payload.length % 6 !== 0 || (isAck && payload.length > 0)) {
      throw frameSizeError(`settings of ${payload.length} bytes`);
    }
    if (this.#hasSettings) this.#receiver.onIdleFrame();
    if (isAck) return;
    for (let at = 0; at < payload.length; at += 6) {
      this.#receiver.onSetting(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
    }
    this.#hasSettings = true;
    this.#receiver.onSettings();
  }
}
