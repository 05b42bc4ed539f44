/** Who counts calls to etcd. */
export interface GrpcMethod {
  started(): void;
  sent(): void;
  received(): void;
  /** @param code of gRPC; 0: the answer came */
  handled(code: number): void;
  /** The header by which etcd knows what the call is part of; undefined: it is not told. */
  readonly traceparent?: string | undefined;
}

/** @param path `/etcdserverpb.KV/Txn` */
export type GrpcCalls = (path: string, type: "unary" | "bidi_stream") => GrpcMethod;

export const deadlineExceeded = 4;
export const unavailable = 14;
