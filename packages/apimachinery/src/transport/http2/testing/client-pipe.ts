import { Duplex } from "node:stream";
import type { TestContext } from "node:test";
import { ClientConnection } from "../client/connection.ts";
import type { ClientStream, StreamHandlers } from "../client/stream.ts";
import { flags, frame, frameTypes, newFrameReader, numberFrame, preface, settingsFrame } from "../wire/frames.ts";
import { encodeFields } from "../wire/hpack.ts";

const windowBytes = 16 * 1024 * 1024;
export const windows = { streamWindowBytes: windowBytes, connectionWindowBytes: windowBytes };

export const post: Buffer = encodeFields([":method", "POST", ":scheme", "http", ":path", "/", ":authority", "etcd"]);

/** A body whose octets tell their offset (modulo 251), so that a gap or a repetition shows. */
export const bytes = (size: number): Buffer => Buffer.from(Array.from({ length: size }, (_, i) => i % 251));

/** Response headers with status 200. */
export const ok = (id: number): Buffer => frame(frameTypes.headers, flags.endHeaders, id, encodeFields([":status", "200"]));

/** A whole response with status 200 and one octet. */
export const answered = (id: number): Buffer =>
  Buffer.concat([ok(id), frame(frameTypes.data, flags.endStream, id, Buffer.from([id]))]);

/** WINDOW_UPDATE. @param id 0: of the connection */
export const grant = (id: number, size: number): Buffer => numberFrame(frameTypes.windowUpdate, id, size);

/** A client's connection over a pipe whose other end is the test, frame by frame. */
export interface ClientPipe {
  readonly made: ClientConnection;
  readonly socket: Duplex;
  /** How requests ended: `a lost`. */
  readonly ends: string[];
  readonly events: string[];
  /** Sends the server's first SETTINGS. */
  begin(): Promise<string[]>;
  /** Sends frames of the server. @returns what {@link turn} returns */
  says(...frames: Buffer[]): Promise<string[]>;
  /** The frames that the client has sent since: `data 1 16384 end`. */
  turn(): Promise<string[]>;
  send(name: string, size: number, ends?: boolean, handlers?: Partial<StreamHandlers>): ClientStream;
}

/** @param values of the server's SETTINGS */
export function aPipe(t: TestContext, ...values: (readonly [number, number])[]): ClientPipe {
  return pipeOver(t, windows, values);
}

/** @param own windows that the client grants @param values of the server's SETTINGS */
export function pipeOver(t: TestContext, own: typeof windows, values: readonly (readonly [number, number])[] = []): ClientPipe {
  let sent: string[] = [];
  const read = newFrameReader((type, flag, id, payload) => {
    if (type !== frameTypes.settings) sent.push(frameText(type, flag, id, payload));
  });
  let skip = preface.length;
  const socket = new Duplex({
    read() {},
    write(chunk: Buffer, _, done) {
      read(chunk.subarray(skip));
      skip = 0;
      done();
    },
  });
  const events: string[] = [];
  const made = new ClientConnection(socket, own, {
    ready() {},
    leaving: () => void events.push("leaving"),
    closed: () => void events.push("closed"),
  });
  t.after(() => socket.destroy());
  const turn = async (): Promise<string[]> => {
    for (let i = 0; i < 4; i++) await new Promise(setImmediate);
    const frames = sent;
    sent = [];
    return frames.map((one) => (one.startsWith("headers") ? one.replace(` ${post.length}`, "") : one));
  };
  const says = (...frames: Buffer[]): Promise<string[]> => {
    socket.push(Buffer.concat(frames));
    return turn();
  };
  const ends: string[] = [];
  const send: ClientPipe["send"] = (name, size, isWhole = true, handlers = {}) =>
    made.request(post, bytes(size), isWhole, {
      fields() {},
      data() {},
      closed: (how) => void ends.push(`${name} ${how.type}`),
      ...handlers,
    });
  return { made, says, turn, ends, send, events, socket, begin: () => says(settingsFrame(values)) };
}

function frameText(type: number, flag: number, id: number, payload: Buffer): string {
  const name = Object.entries(frameTypes).find(([, value]) => value === type)?.[0] ?? "unknown";
  const isNumber = type === frameTypes.windowUpdate || type === frameTypes.resetStream;
  const hasEnd = (type === frameTypes.data || type === frameTypes.headers) && (flag & flags.endStream) !== 0;
  const value = type === frameTypes.goAway ? payload.readUInt32BE(4) : isNumber ? payload.readUInt32BE(0) : payload.length;
  return `${name} ${id} ${value}${hasEnd ? " end" : ""}`;
}
