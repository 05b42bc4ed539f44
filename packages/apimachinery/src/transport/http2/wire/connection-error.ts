import { HpackError } from "./hpack.ts";

/** Error codes of RST_STREAM and GOAWAY. Source: RFC 9113, section 7 */
export const errorCodes = {
  none: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  streamClosed: 5,
  frameSize: 6,
  refusedStream: 7,
  cancel: 8,
  compression: 9,
  enhanceYourCalm: 11,
} as const;

/** A violation of the protocol by the peer that ends the connection. */
export class ConnectionError extends Error {
  /** One of {@link errorCodes}. */
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** @returns the code to send to the peer, one of {@link errorCodes} */
export function codeOf(err: unknown): number {
  if (err instanceof ConnectionError) return err.code;
  return err instanceof HpackError ? errorCodes.compression : errorCodes.internal;
}

/** A violation of RFC 9113 by the peer, answered by GOAWAY with PROTOCOL_ERROR; likewise the two below with their codes. */
export const protocolError = (message: string): ConnectionError => new ConnectionError(errorCodes.protocol, message);
/** FRAME_SIZE_ERROR: the length does not fit the type of the frame, or is over the limit. */
export const frameSizeError = (message: string): ConnectionError => new ConnectionError(errorCodes.frameSize, message);
/** FLOW_CONTROL_ERROR: the peer sends more than its window, or a window exceeds 2^31 - 1. */
export const windowError = (message: string): ConnectionError => new ConnectionError(errorCodes.flowControl, message);
/** ENHANCE_YOUR_CALM: the peer causes excessive load. */
export const tooMuch = (message: string): ConnectionError => new ConnectionError(errorCodes.enhanceYourCalm, message);
