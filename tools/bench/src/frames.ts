/**
 * The few frames of HTTP/2 that a client of watches needs: requests without bodies, and answers whose data it counts.
 * Source: RFC 9113 (frames), RFC 7541 (header fields)
 */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
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

/**
 * @param onFrame called for each whole frame but those of data; @param onData for each piece of data, a view that is valid
 * until it returns. Data is not put together: copies of it, and their collection, would be most of what the client does.
 * @returns takes what comes in
 */
export function newFrameReader(
  onFrame: (frame: Frame) => void,
  onData: (stream: number, piece: Buffer) => void,
): (chunk: Buffer) => void {
  const head = Buffer.alloc(headBytes);
  let headSeen = 0;
  let left = 0;
  let kept = noBytes;
  return (chunk) => {
    for (let at = 0; ; ) {
      if (headSeen < headBytes) {
        const copied = chunk.copy(head, headSeen, at);
        headSeen += copied;
        at += copied;
        if (headSeen < headBytes) return;
        left = head.readUIntBE(0, 3);
      }
      const piece = chunk.subarray(at, at + left);
      at += piece.length;
      left -= piece.length;
      const [type = 0, flags = 0] = [head[3], head[4]];
      const stream = head.readUInt32BE(5);
      if (type === frameTypes.data) onData(stream, piece);
      else kept = Buffer.concat([kept, piece]);
      if (left > 0) return;
      if (type !== frameTypes.data) onFrame({ type, flags, stream, payload: kept });
      kept = noBytes;
      headSeen = 0;
    }
  };
}

export const noBytes = Buffer.alloc(0);
