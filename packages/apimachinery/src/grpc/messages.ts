/** Length-prefixed messages of gRPC: a compressed flag, the length, the bytes. Source: grpc PROTOCOL-HTTP2.md */

const headBytes = 5;

export class MessageTooLarge extends Error {}

/** Frames one message, uncompressed. */
export function framedMessage(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(headBytes + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, headBytes);
  return frame;
}

/**
 * Splits a stream of chunks into messages.
 * @param onMessage called with a view of the received bytes; the view may be kept
 * @param mostBytes upper bound of one message
 * @throws MessageTooLarge
 */
export function newMessageReader(
  onMessage: (message: Buffer) => void,
  mostBytes = Number.POSITIVE_INFINITY,
): (chunk: Buffer) => void {
  let parts: Buffer[] = [];
  let size = 0;
  let wanted = headBytes;
  return (chunk) => {
    parts.push(chunk);
    size += chunk.length;
    if (size < wanted) return;
    let rest = parts.length === 1 ? chunk : Buffer.concat(parts);
    wanted = headBytes;
    while (rest.length >= headBytes) {
      const length = rest.readUInt32BE(1);
      if (length > mostBytes) throw new MessageTooLarge(`received message larger than max (${length} vs. ${mostBytes})`);
      wanted = headBytes + length;
      if (rest.length < wanted) break;
      onMessage(rest.subarray(headBytes, wanted));
      rest = rest.subarray(wanted);
      wanted = headBytes;
    }
    parts = rest.length === 0 ? [] : [rest];
    size = rest.length;
  };
}

/** Decodes the percent-encoded `grpc-message`. Malformed text is returned as it is. */
export function statusMessage(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
