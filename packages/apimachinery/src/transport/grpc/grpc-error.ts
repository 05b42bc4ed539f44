import { grpcCodeNames } from "../../objects/errors/grpc-codes.ts";

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

interface GrpcErrorOptions extends ErrorOptions {
  readonly unprocessed?: boolean;
}

/** A failed call. The message has the form of upstream's library: `rpc error: code = Unavailable desc = …`. */
export class GrpcError extends Error {
  /** gRPC status code. */
  readonly code: number;
  /** The status message. */
  readonly details: string;
  /** The server has not processed the call: it was not reached, or refused the stream (GOAWAY, REFUSED_STREAM). */
  readonly unprocessed: boolean;

  constructor(code: number, details: string, options: GrpcErrorOptions = {}) {
    super(`rpc error: code = ${grpcCodeNames[code] ?? `Code(${code})`} desc = ${details}`, options);
    this.code = code;
    this.details = details;
    this.unprocessed = options.unprocessed ?? false;
  }
}

/** @returns `err`, or an error with code Unavailable: what fails otherwise before a call is sent never reaches the server */
export function asGrpcError(err: unknown): GrpcError {
  return err instanceof GrpcError ? err : new GrpcError(grpcCodes.unavailable, textOf(err), { cause: err, unprocessed: true });
}

/** @returns `err`, or an error with code Internal: a message that cannot be encoded or decoded */
export function asCallError(err: unknown): GrpcError {
  return err instanceof GrpcError ? err : new GrpcError(grpcCodes.internal, textOf(err), { cause: err });
}

const textOf = (err: unknown): string => (err instanceof Error ? err.message : String(err));
