import { grpcCodeNames } from "../errors/grpc-codes.ts";

/** gRPC status codes that this side produces. Source: google.golang.org/grpc codes */
export const grpcCodes = {
  ok: 0,
  canceled: 1,
  unknown: 2,
  deadlineExceeded: 4,
  permissionDenied: 7,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const;

export interface GrpcErrorOptions extends ErrorOptions {
  readonly unprocessed?: boolean;
}

/** A failed call. The message has the form of upstream's library: `rpc error: code = Unavailable desc = …`. */
export class GrpcError extends Error {
  /** gRPC status code. */
  readonly code: number;
  /** The status message. */
  readonly details: string;
  /** The server has not processed the call: it was not reached, or said so (GOAWAY, REFUSED_STREAM). */
  readonly unprocessed: boolean;

  constructor(code: number, details: string, options: GrpcErrorOptions = {}) {
    super(`rpc error: code = ${grpcCodeNames[code] ?? `Code(${code})`} desc = ${details}`, options);
    this.code = code;
    this.details = details;
    this.unprocessed = options.unprocessed ?? false;
  }
}

/** @returns `err`, or an error with code Unavailable: what failed otherwise never reached the server */
export function asGrpcError(err: unknown): GrpcError {
  if (err instanceof GrpcError) return err;
  return new GrpcError(grpcCodes.unavailable, err instanceof Error ? err.message : String(err), {
    cause: err,
    unprocessed: true,
  });
}
