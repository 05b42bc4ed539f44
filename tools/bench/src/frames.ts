/**
 * The few frames of HTTP/2 that a client of watches needs: requests without bodies, and answers whose data it counts.
 * Source: RFC 9113 (frames), RFC 7541 (header fields)
 */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  /** A view; valid until the callback returns. */
  readonly payload: Buffer;
}

export const frameTypes = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goAway: 7, windowUpdate: 8 } as const;
export const flagAck = 1;
const flagEndStream = 1;
const flagEndHeaders = 4;
const headBytes = 9;

/** What a client sends first: the preface, and windows as wide as they may be. */
export function opening(): Buffer {
  const settings = Buffer.alloc(6);
  settings.writeUInt16BE(4); // SETTINGS_INITIAL_WINDOW_SIZE
  settings.writeUInt32BE(widestWindow, 2);
  return Buffer.concat([
    Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    encodeFrame(frameTypes.settings, 0, 0, settings),
    widen(widestWindow - 65_535),
  ]);
}

const widestWindow = 2 ** 31 - 1;

/** Gives the connection's window back what was taken from it. */
export function widen(bytes: number): Buffer {
  const increment = Buffer.alloc(4);
  increment.writeUInt32BE(bytes);
  return encodeFrame(frameTypes.windowUpdate, 0, 0, increment);
}

export function encodeFrame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A GET over TLS. */
export function encodeGet(stream: number, headers: Readonly<Record<string, string>>): Buffer {
  const method = 0x82; // in the static table: `:method: GET`
  const scheme = 0x87; // `:scheme: https`
  const fields = Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]);
  return encodeFrame(
    frameTypes.headers,
    flagEndStream | flagEndHeaders,
    stream,
    Buffer.concat([Buffer.from([method, scheme]), ...fields]),
  );
}

/** A literal without Huffman coding. */
function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  const length: number[] = [];
  if (bytes.length < 127) length.push(bytes.length);
  else {
    length.push(127);
    let rest = bytes.length - 127;
    for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) | 128);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}

/** True for headers that begin with `:status: 200`, which is in the static table. */
export const isOk = ({ payload }: Frame): boolean => payload[0] === 0x88;

/** @returns takes what comes in, and calls back for each whole frame. */
export function newFrameReader(onFrame: (frame: Frame) => void): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    while (bytes.length - at >= headBytes) {
      const end = at + headBytes + bytes.readUIntBE(at, 3);
      if (end > bytes.length) break;
      const [type = 0, flags = 0] = [bytes[at + 3], bytes[at + 4]];
      onFrame({ type, flags, stream: bytes.readUInt32BE(at + 5), payload: bytes.subarray(at + headBytes, end) });
      at = end;
    }
    rest = Buffer.from(bytes.subarray(at));
  };
}
