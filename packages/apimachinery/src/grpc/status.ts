import type { Fields, StreamEnd } from "../http2/client/stream.ts";
import { GrpcError, grpcCodes } from "./grpc-error.ts";
import { statusMessage } from "./messages.ts";

export const noFields: Fields = new Map();

/** Whether the fields hold the status of the call: trailers, or headers of a response without a body. */
export function isStatus(fields: Fields): boolean {
  return fields.has("grpc-status") || fields.get(":status") !== "200";
}

/** The gRPC status code; UNAVAILABLE when the server sent none. */
export function codeOf(status: Fields): number {
  return Number(status.get("grpc-status") ?? grpcCodes.unavailable);
}

/** HTTP status of a response that is not gRPC's. Source: grpc doc/http-grpc-status-mapping.md */
const codesOfHttp: Readonly<Record<string, number>> = {
  400: grpcCodes.internal,
  401: grpcCodes.unauthenticated,
  403: grpcCodes.permissionDenied,
  404: grpcCodes.unimplemented,
  429: grpcCodes.unavailable,
  502: grpcCodes.unavailable,
  503: grpcCodes.unavailable,
  504: grpcCodes.unavailable,
};

/** @returns the error of a call that ended so; undefined for status OK */
export function failureOf(status: Fields, end: StreamEnd): GrpcError | undefined {
  const code = status.get("grpc-status");
  if (code === "0" && end.type === "ended") return undefined;
  if (code !== undefined && code !== "0") return new GrpcError(Number(code), statusMessage(status.get("grpc-message") ?? ""));
  const http = code === undefined ? status.get(":status") : undefined;
  if (http !== undefined) {
    return new GrpcError(codesOfHttp[http] ?? grpcCodes.unknown, `unexpected HTTP status code received from server: ${http}`);
  }
  if (end.type === "ended") return new GrpcError(grpcCodes.unavailable, "server closed the stream without sending trailers");
  return new GrpcError(grpcCodes.unavailable, end.reason, { unprocessed: end.type === "refused" });
}

/** Source: google.golang.org/grpc rpc_util.go */
export function tooLarge(bytes: number, mostBytes: number): GrpcError {
  return new GrpcError(grpcCodes.resourceExhausted, `grpc: received message larger than max (${bytes} vs. ${mostBytes})`);
}
