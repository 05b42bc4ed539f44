import { once } from "node:events";
import type { OnReadOpts } from "node:net";
import { type ConnectionOptions, connect } from "node:tls";
import {
  encodeFrame,
  encodeGet,
  type Frame,
  flagAck,
  frameTypes,
  isOk,
  newFrameReader,
  noBytes,
  opening,
  widen,
} from "./frames.ts";

/**
 * Many watches on one connection, which only counts their events: node's own HTTP/2 client makes a stream with listeners
 * of each, and shares its processors with the server that is measured.
 */
export interface WatchConnection {
  /** Resolves when the answer has begun; `onEvent` is called for each line of it. @throws Error for any status but 200 */
  watch(path: string, onEvent: () => void): Promise<void>;
  close(): void;
}

/** So much is read before the connection's window is opened again. */
const windowStep = 2 ** 28;
const newline = 10;
/** What one read may bring: more than a record of TLS. */
const readBytes = 64 * 1024;

interface Watch {
  readonly onEvent: () => void;
  readonly begun: PromiseWithResolvers<void>;
}

export async function openWatchConnection(url: string, token: string, ca: Buffer | undefined): Promise<WatchConnection> {
  const { hostname, port, host } = new URL(url);
  const trust = ca === undefined ? { rejectUnauthorized: false } : { ca };
  let read: (chunk: Buffer) => void = () => {};
  const onread: OnReadOpts = {
    buffer: Buffer.alloc(readBytes), // always the same, so that there is nothing to collect
    callback(length, buffer) {
      read((buffer as Buffer).subarray(0, length));
      return true;
    },
  };
  const options: ConnectionOptions & { onread: OnReadOpts } = {
    host: hostname,
    port: Number(port),
    ALPNProtocols: ["h2"],
    ...trust,
    onread,
  };
  const socket = connect(options);
  await once(socket, "secureConnect");
  socket.setNoDelay(true);
  const watches = new Map<number, Watch>();
  let nextStream = 1;
  let taken = 0;

  const fail = (why: string): void => {
    for (const { begun } of watches.values()) begun.reject(new Error(`watch: ${why}`));
  };
  const onFrame = (frame: Frame): void => {
    const { type, flags, stream, payload } = frame;
    switch (type) {
      case frameTypes.headers:
        if (isOk(frame)) watches.get(stream)?.begun.resolve();
        else watches.get(stream)?.begun.reject(new Error("watch: not answered with 200"));
        return;
      case frameTypes.settings:
      case frameTypes.ping:
        if ((flags & flagAck) === 0) socket.write(encodeFrame(type, flagAck, 0, type === frameTypes.ping ? payload : noBytes));
        return;
      case frameTypes.reset:
        watches.get(stream)?.begun.reject(new Error("watch: reset"));
        return;
      case frameTypes.goAway:
        fail("the server closes the connection");
    }
  };
  const onData = (stream: number, piece: Buffer): void => {
    const watch = watches.get(stream);
    for (let at = piece.indexOf(newline); at !== -1; at = piece.indexOf(newline, at + 1)) watch?.onEvent();
    taken += piece.length;
    if (taken < windowStep) return;
    socket.write(widen(taken));
    taken = 0;
  };
  read = newFrameReader(onFrame, onData);
  socket.on("error", (err) => fail(err.message));
  socket.on("close", () => fail("the connection is closed"));
  socket.write(opening());
  return {
    watch(path, onEvent) {
      const stream = nextStream;
      nextStream += 2;
      const begun = Promise.withResolvers<void>();
      begun.promise.catch(() => {});
      watches.set(stream, { onEvent, begun });
      socket.write(encodeGet(stream, { ":path": path, ":authority": host, authorization: `Bearer ${token}` }));
      return begun.promise;
    },
    close: () => socket.destroy(),
  };
}
