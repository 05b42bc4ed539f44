/** Receives the events of one gRPC call, for metrics and traces. */
export interface GrpcMethod {
  started(): void;
  sent(): void;
  received(): void;
  /** @param code gRPC status; 0: OK */
  handled(code: number): void;
  /** The trace context header sent with the call; undefined: none. */
  readonly traceparent?: string | undefined;
}

/** Called at the start of each call. @param path `/etcdserverpb.KV/Txn` */
export type GrpcCalls = (path: string, type: "unary" | "bidi_stream") => GrpcMethod;
