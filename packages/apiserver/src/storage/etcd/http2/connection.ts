import { connect as connectTcp, isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connectTls } from "@coxswain/apimachinery/client/connect";
import { errorCodes } from "@coxswain/apimachinery/http2/wire/connection-error";
import {
  defaultMaxFrameBytes,
  defaultWindowBytes,
  flags,
  frame,
  frameTypes,
  headBytes,
  newFrameReader,
  numberFrame,
  preface,
  settings,
  settingsFrame,
  unpadded,
  writeHead,
} from "@coxswain/apimachinery/http2/wire/frames";
import { newStaticFieldsDecoder } from "@coxswain/apimachinery/http2/wire/hpack-static-decoder";
import { TransientMap } from "@coxswain/apimachinery/meta/transient-map";

/**
 * A client-side HTTP/2 connection with the features that gRPC needs. node:http2 creates a stream with two buffers, a session
 * reference and a dozen events for each call, which cost more than the call itself.
 * Source: RFC 9113
 */
export interface Http2Connection {
  /** @param end whether `body` ends the request @throws Error when the connection accepts no more requests */
  request(block: Buffer, body: Buffer, end: boolean, handlers: StreamHandlers): Http2Stream;
  ping(answered: () => void): void;
  /** Closes the connection; open streams end as `lost`. */
  destroy(reason: Error): void;
}

export interface Http2Stream {
  write(body: Buffer): void;
  /** Resets the stream; no handler is called afterwards. */
  cancel(): void;
}

/** Header fields by name; names are unique. */
export type Fields = ReadonlyMap<string, string>;

export interface StreamHandlers {
  /** Called for headers and for trailers. */
  fields(fields: Fields): void;
  /** @param bytes a view on memory that is not reused; may be kept */
  data(bytes: Buffer): void;
  /** The last call, exactly once. */
  closed(end: StreamEnd): void;
}

/** `ended`: the response is complete. `refused`: the server did not process the request. `lost`: it may have. */
export type StreamEnd = { readonly type: "ended" } | { readonly type: "refused" | "lost"; readonly reason: string };

export interface ConnectionEvents {
  /** The server's SETTINGS arrived; requests may be made. */
  ready(): void;
  /** Data was received. */
  heard(): void;
  /** No further requests are accepted (GOAWAY, stream ids exhausted); open streams continue. */
  leaving(): void;
  /** The last call, exactly once. */
  closed(reason: string): void;
}

export interface ConnectionOptions {
  /** PEM. */
  ca?: Buffer | undefined;
  cert?: Buffer | undefined;
  key?: Buffer | undefined;
  /** Path of the certificate, for error messages. */
  certFile?: string | undefined;
  /** An established, unused connection to the server; undefined: dial a new one. */
  way?: Duplex | undefined;
}

interface Stream extends Http2Stream {
  /** 0 until it is opened. */
  id: number;
  readonly block: Buffer;
  readonly handlers: StreamHandlers;
  /** Data that flow control holds back. */
  unsent: Buffer[];
  /** No data follows `unsent`. */
  ended: boolean;
  endSent: boolean;
  sendWindow: number;
  /** Bytes received for which no WINDOW_UPDATE was sent yet. */
  taken: number;
  over: boolean;
}

/** Receive window, large enough that flow control does not slow down lists. */
const windowBytes = 16 * 1024 * 1024;
const lastStreamId = 2 ** 31 - 1;
const mostHeaderBytes = 1024 * 1024;
/** How long a ping reply waits to be sent with other frames. Servers allow several seconds. */
const pongPatienceMs = 50;
/** With this many pending replies they are sent at once. */
const mostPongs = 16;
const noBytes = Buffer.alloc(0);
const endedInOrder: StreamEnd = { type: "ended" };

/** @param origin `https://10.0.0.1:2379` */
export function connectHttp2(origin: string, options: ConnectionOptions, events: ConnectionEvents): Http2Connection {
  const socket = dial(origin, options);
  const streams = new TransientMap<number, Stream>();
  /** Streams queued while the peer's MAX_CONCURRENT_STREAMS is reached. */
  const waiting: Stream[] = [];
  const decodeFields = newStaticFieldsDecoder();
  let nextId = 1;
  let sendWindow = defaultWindowBytes;
  let peerStreamWindow = defaultWindowBytes;
  let peerFrameBytes = defaultMaxFrameBytes;
  let mostStreams = Number.POSITIVE_INFINITY;
  let taken = 0;
  let isReady = false;
  let leaving = false;
  let closed = false;
  let failure: string | undefined;
  let pinged: (() => void) | undefined;
  /** A header block that continues in CONTINUATION frames. */
  let block: { stream: number; flag: number; parts: Buffer[]; size: number } | undefined;

  /**
   * All frames of one event-loop turn are written together. process.nextTick would flush too early: it runs after each of the
   * requests that are parsed from one chunk.
   */
  let out: Buffer[] = [];
  function send(bytes: Buffer): void {
    if (out.push(bytes) === 1) setImmediate(flush);
  }
  function flush(): void {
    if (pongs.length > 0) {
      out.push(...pongs.splice(0));
      clearTimeout(pongTimer);
    }
    if (out.length === 0) return;
    const all = out.length === 1 ? (out[0] as Buffer) : Buffer.concat(out);
    out = [];
    if (!socket.destroyed) socket.write(all);
  }

  /**
   * etcd pings with each request to estimate the bandwidth-delay product. The replies are sent with the next request: a write
   * of their own wakes etcd, which delays the events on their way to watchers.
   */
  const pongs: Buffer[] = [];
  let pongTimer: NodeJS.Timeout | undefined;
  function answerPing(payload: Buffer): void {
    if (pongs.push(frame(frameTypes.ping, flags.ack, 0, payload)) === 1) pongTimer = setTimeout(flush, pongPatienceMs).unref();
    else if (pongs.length === mostPongs) send(noBytes);
  }

  function fail(reason: string): void {
    failure ??= reason;
    socket.destroy();
  }

  function finish(stream: Stream, end: StreamEnd): void {
    if (stream.over) return;
    stream.over = true;
    streams.delete(stream.id);
    stream.handlers.closed(end);
    openWaiting();
    if (leaving && streams.size === 0) socket.destroy();
  }

  function open(stream: Stream): void {
    stream.id = nextId;
    nextId += 2;
    stream.sendWindow = peerStreamWindow;
    streams.set(stream.id, stream);
    const first = stream.unsent[0] ?? noBytes;
    const length = first.length;
    // Fast path for the common case of a small, complete request: both frames in one buffer.
    if (stream.ended && length <= Math.min(peerFrameBytes, stream.sendWindow, sendWindow)) {
      const bytes = Buffer.allocUnsafe(2 * headBytes + stream.block.length + length);
      writeHead(bytes, 0, stream.block.length, frameTypes.headers, flags.endHeaders, stream.id);
      stream.block.copy(bytes, headBytes);
      const at = headBytes + stream.block.length;
      writeHead(bytes, at, length, frameTypes.data, flags.endStream, stream.id);
      first.copy(bytes, at + headBytes);
      stream.unsent = [];
      stream.endSent = true;
      sendWindow -= length;
      send(bytes);
      return;
    }
    send(frame(frameTypes.headers, flags.endHeaders, stream.id, stream.block));
    pump(stream);
  }

  function openWaiting(): void {
    while (!leaving && !closed && waiting.length > 0 && streams.size < mostStreams) {
      const stream = waiting.shift() as Stream;
      if (!stream.over) open(stream);
    }
  }

  /** Sends as much of a stream's data as the flow-control windows allow. */
  function pump(stream: Stream): void {
    for (;;) {
      const next = stream.unsent[0];
      if (next === undefined || stream.over) return;
      const length = Math.min(next.length, peerFrameBytes, stream.sendWindow, sendWindow);
      if (length <= 0 && next.length > 0) return;
      if (length === next.length) stream.unsent.shift();
      else stream.unsent[0] = next.subarray(length);
      const last = stream.ended && stream.unsent.length === 0;
      if (last) stream.endSent = true;
      stream.sendWindow -= length;
      sendWindow -= length;
      send(frame(frameTypes.data, last ? flags.endStream : 0, stream.id, next.subarray(0, length)));
    }
  }

  function onData(stream: Stream | undefined, flag: number, payload: Buffer): void {
    const bytes = unpadded(flag, payload);
    taken += payload.length;
    if (taken > windowBytes / 2) {
      send(numberFrame(frameTypes.windowUpdate, 0, taken));
      taken = 0;
    }
    if (stream === undefined) return; // cancelled
    stream.taken += payload.length;
    const ends = (flag & flags.endStream) !== 0;
    if (stream.taken > windowBytes / 2 && !ends) {
      send(numberFrame(frameTypes.windowUpdate, stream.id, stream.taken));
      stream.taken = 0;
    }
    if (bytes.length > 0) stream.handlers.data(bytes);
    if (ends) endOfAnswer(stream);
  }

  function onHeaders(id: number, flag: number, parts: Buffer[], size: number): void {
    if (size > mostHeaderBytes) throw new Error(`headers of ${size} bytes`);
    if ((flag & flags.endHeaders) === 0) {
      block = { stream: id, flag, parts, size };
      return;
    }
    block = undefined;
    const fields = decodeFields(parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, size));
    const stream = streams.get(id);
    stream?.handlers.fields(fields);
    if (stream !== undefined && (flag & flags.endStream) !== 0) endOfAnswer(stream);
  }

  function endOfAnswer(stream: Stream): void {
    if (!stream.endSent) send(numberFrame(frameTypes.resetStream, stream.id, errorCodes.cancel));
    finish(stream, endedInOrder);
  }

  function onSettings(flag: number, payload: Buffer): void {
    if ((flag & flags.ack) !== 0) return;
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      const value = payload.readUInt32BE(at + 2);
      switch (payload.readUInt16BE(at)) {
        case settings.maxConcurrentStreams:
          mostStreams = value;
          break;
        case settings.initialWindowSize:
          for (const stream of streams.values()) stream.sendWindow += value - peerStreamWindow;
          peerStreamWindow = value;
          break;
        case settings.maxFrameSize:
          peerFrameBytes = value;
          break;
      }
    }
    send(frame(frameTypes.settings, flags.ack, 0, noBytes));
    if (!isReady) {
      isReady = true;
      events.ready();
    }
    for (const stream of streams.values()) pump(stream);
    openWaiting();
  }

  function onGoAway(payload: Buffer): void {
    const last = payload.readUInt32BE(0) & 0x7fffffff;
    leave();
    for (const stream of streams.values()) if (stream.id > last) finish(stream, goneAway);
    if (streams.size === 0) socket.destroy();
  }

  /** Accepts no more requests. */
  function leave(): void {
    if (leaving) return;
    leaving = true;
    events.leaving();
    for (const stream of waiting.splice(0)) finish(stream, goneAway);
  }

  function onWindowUpdate(id: number, increment: number): void {
    if (id === 0) {
      const held = sendWindow === 0; // otherwise no stream is blocked on it, and etcd widens it with every request
      sendWindow += increment;
      if (held) for (const stream of streams.values()) pump(stream);
      return;
    }
    const stream = streams.get(id);
    if (stream === undefined) return;
    stream.sendWindow += increment;
    pump(stream);
  }

  function onFrame(type: number, flag: number, id: number, payload: Buffer): void {
    if (block !== undefined && (type !== frameTypes.continuation || id !== block.stream)) {
      throw new Error("a frame within headers");
    }
    switch (type) {
      case frameTypes.data:
        onData(streams.get(id), flag, payload);
        return;
      case frameTypes.headers: {
        const rest = unpadded(flag, payload);
        const part = (flag & flags.priority) === 0 ? rest : rest.subarray(5);
        onHeaders(id, flag, [part], part.length);
        return;
      }
      case frameTypes.continuation: {
        if (block === undefined) throw new Error("headers go on that did not begin");
        const { parts, size } = block;
        onHeaders(id, block.flag | flag, [...parts, payload], size + payload.length);
        return;
      }
      case frameTypes.resetStream: {
        const code = payload.readUInt32BE(0);
        const stream = streams.get(id);
        if (stream === undefined) return;
        finish(stream, {
          type: code === errorCodes.refusedStream ? "refused" : "lost",
          reason: `stream closed with error code ${code}`,
        });
        return;
      }
      case frameTypes.settings:
        onSettings(flag, payload);
        return;
      case frameTypes.ping:
        if ((flag & flags.ack) === 0) {
          answerPing(payload);
          return;
        }
        pinged?.();
        pinged = undefined;
        return;
      case frameTypes.goAway:
        onGoAway(payload);
        return;
      case frameTypes.windowUpdate:
        onWindowUpdate(id, payload.readUInt32BE(0) & 0x7fffffff);
        return;
      case frameTypes.pushPromise:
        throw new Error("a push that was forbidden");
    }
  }

  const read = newFrameReader(onFrame);
  socket.on("data", (chunk: Buffer) => {
    events.heard();
    try {
      read(chunk);
    } catch (err) {
      fail((err as Error).message);
    }
  });
  socket.on("error", (err) => {
    failure ??= err.message;
  });
  socket.once("end", () => fail("the connection was closed"));
  socket.once("close", () => {
    closed = true;
    clearTimeout(pongTimer);
    const reason = failure ?? "the connection was closed";
    for (const stream of streams.values()) finish(stream, { type: "lost", reason });
    for (const stream of waiting.splice(0)) finish(stream, { type: "refused", reason });
    events.closed(reason);
  });
  // Written before the connection is established; the socket buffers it.
  out.push(
    preface,
    settingsFrame([
      [settings.headerTableSize, 0],
      [settings.enablePush, 0],
      [settings.initialWindowSize, windowBytes],
    ]),
    numberFrame(frameTypes.windowUpdate, 0, windowBytes - defaultWindowBytes),
  );
  flush();

  return {
    request(fields, body, end, handlers) {
      if (nextId > lastStreamId) leave();
      if (closed || leaving || socket.destroyed) throw new Error("the connection takes no more requests");
      const stream: Stream = {
        id: 0,
        block: fields,
        handlers,
        unsent: body.length > 0 || end ? [body] : [],
        ended: end,
        endSent: false,
        sendWindow: 0,
        taken: 0,
        over: false,
        write(more) {
          if (stream.over || stream.ended) return;
          stream.unsent.push(more);
          if (stream.id !== 0) pump(stream);
        },
        cancel() {
          if (stream.over) return;
          stream.over = true;
          if (stream.id === 0) return;
          streams.delete(stream.id);
          send(numberFrame(frameTypes.resetStream, stream.id, errorCodes.cancel));
          openWaiting();
          if (leaving && streams.size === 0) socket.destroy();
        },
      };
      if (streams.size < mostStreams) open(stream);
      else waiting.push(stream);
      return stream;
    },
    ping(answered) {
      pinged = answered;
      send(frame(frameTypes.ping, 0, 0, Buffer.alloc(8)));
    },
    destroy(reason) {
      fail(reason.message);
    },
  };
}

const goneAway: StreamEnd = { type: "refused", reason: "the server goes away" };

/** @param origin `https://10.0.0.1:2379` */
export function addressOf(origin: string): { host: string; port: number; secure: boolean } {
  const { protocol, hostname, port } = new URL(origin);
  const secure = protocol === "https:";
  return {
    host: hostname.startsWith("[") ? hostname.slice(1, -1) : hostname,
    port: Number(port || (secure ? 443 : 80)),
    secure,
  };
}

function dial(origin: string, { ca, cert, key, certFile, way }: ConnectionOptions): Duplex {
  const { host, port, secure } = addressOf(origin);
  if (!secure && way !== undefined) return way;
  const socket: Socket = secure
    ? connectTls({
        ...{ host, port },
        ...(way !== undefined && { socket: way }),
        ...(isIP(host) === 0 && { servername: host }),
        ALPNProtocols: ["h2"],
        ...(ca !== undefined && { ca }),
        ...(cert !== undefined && { cert }),
        ...(key !== undefined && { key }),
        certFile,
      })
    : connectTcp({ host, port });
  socket.setNoDelay(true);
  return socket;
}
