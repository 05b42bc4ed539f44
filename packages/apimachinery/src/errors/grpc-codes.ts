/** gRPC's names of its codes, by number, as they stand in messages. Source: google.golang.org/grpc codes */
export const grpcCodeNames = [
  "OK",
  "Canceled",
  "Unknown",
  "InvalidArgument",
  "DeadlineExceeded",
  "NotFound",
  "AlreadyExists",
  "PermissionDenied",
  "ResourceExhausted",
  "FailedPrecondition",
  "Aborted",
  "OutOfRange",
  "Unimplemented",
  "Internal",
  "Unavailable",
  "DataLoss",
  "Unauthenticated",
] as const;
export type GrpcCodeName = (typeof grpcCodeNames)[number];
