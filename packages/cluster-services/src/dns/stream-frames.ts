import { ownCopy } from "./own-copy.ts";

/** DNS messages on a TCP stream: each after its length in two bytes. Source: RFC 1035, section 4.2.2 */

export function withLength(message: Buffer): Buffer {
  const framed = Buffer.allocUnsafe(message.length + 2);
  framed.writeUInt16BE(message.length, 0);
  message.copy(framed, 2);
  return framed;
}

/**
 * Cuts a stream into messages. Keeps no more than one message.
 * @returns a function that takes the next bytes; false once a message is longer than `mostBytes`, after which it ignores all
 */
export function newFrameReader(mostBytes: number, onMessage: (message: Buffer) => void): (bytes: Buffer) => boolean {
  let kept: Buffer = Buffer.alloc(0);
  let isBroken = false;
  return (bytes) => {
    if (isBroken) return false;
    let rest = kept.length === 0 ? bytes : Buffer.concat([kept, bytes]);
    while (rest.length >= 2) {
      const length = rest.readUInt16BE(0);
      if (length > mostBytes) {
        isBroken = true;
        kept = Buffer.alloc(0);
        return false;
      }
      if (rest.length < 2 + length) break;
      onMessage(rest.subarray(2, 2 + length));
      rest = rest.subarray(2 + length);
    }
    kept = ownCopy(rest); // not a view that would hold the whole chunk
    return true;
  };
}
