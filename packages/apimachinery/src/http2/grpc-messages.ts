/** Messages as gRPC puts them on a stream: whether it is compressed, its length, its bytes. Source: grpc PROTOCOL-HTTP2.md */

const headBytes = 5;

/** One message, not compressed. */
export function framedMessage(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(headBytes + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, headBytes);
  return frame;
}

/**
 * Cuts a stream of chunks into messages.
 * @param onMessage is given a view that lives as long as it is held
 * @param mostBytes of one message
 * @throws Error for a longer one
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
      if (length > mostBytes) throw new Error(`received message larger than max (${length} vs. ${mostBytes})`);
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

/** What `grpc-message` says: bytes that a header may not have are escaped. Text that is not is taken as it is. */
export function statusMessage(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
