import {
  internalError,
  requestEntityTooLarge,
  resourceExpired,
  StatusError,
  serviceUnavailable,
  timeout,
} from "@coxswain/apimachinery/objects/errors/status-error";
import { GrpcError } from "@coxswain/apimachinery/transport/grpc/grpc-error";

/** Why an etcd call failed. `unsent`: no member has processed the request, so that retrying on another one is safe. */
type EtcdErrorReason =
  | "compacted"
  | "future-revision"
  | "too-large"
  | "no-space"
  | "unavailable"
  | "unsent"
  | "deadline"
  | "canceled"
  | "other";

/** A failed etcd call, classified by `reason`. */
export class EtcdError extends Error {
  readonly reason: EtcdErrorReason;

  constructor(reason: EtcdErrorReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "EtcdError";
    this.reason = reason;
  }
}

/** Maps gRPC code and etcd's text to a reason. Source: etcd api/v3rpc/rpctypes/error.go */
export function etcdErrorOf(cause: unknown): EtcdError {
  if (cause instanceof EtcdError) return cause;
  const { code, details } = cause as { code?: number; details?: string }; // cast: an error of the gRPC client has both fields, other errors have none
  const text = details ?? (cause instanceof Error ? cause.message : String(cause));
  if (cause instanceof GrpcError && cause.unprocessed) return new EtcdError("unsent", text, { cause });
  return new EtcdError(reasonOf(code, text), text, { cause });
}

function reasonOf(code: number | undefined, text: string): EtcdErrorReason {
  if (text.includes("required revision has been compacted")) return "compacted";
  if (text.includes("required revision is a future revision")) return "future-revision";
  if (text.includes("request is too large") || text.includes("message larger than max")) return "too-large";
  if (text.includes("database space exceeded")) return "no-space";
  switch (code) {
    case 1:
      return "canceled";
    case 4:
      return "deadline";
    case 14:
      return /no leader|No connection established|ECONNREFUSED|ENOTFOUND|EHOSTUNREACH|Name resolution failed/.test(text)
        ? "unsent"
        : "unavailable";
    default:
      return "other";
  }
}

/** Converts an EtcdError to the Status that API clients get. StatusErrors and other errors pass unchanged. */
export function statusErrorOf(err: unknown): unknown {
  if (err instanceof StatusError || !(err instanceof EtcdError)) return err;
  switch (err.reason) {
    case "compacted":
      return withCause(resourceExpired("The resourceVersion for the provided list is too old."), err);
    case "too-large":
      return withCause(requestEntityTooLarge(`etcdserver: request is too large`), err);
    case "unavailable":
    case "unsent":
      return withCause(serviceUnavailable(`etcd is unavailable: ${err.message}`), err);
    case "deadline":
      return withCause(timeout("etcdserver: request timed out", 1), err);
    default:
      return withCause(internalError(err), err);
  }
}

function withCause(status: StatusError, cause: Error): StatusError {
  if (status.cause === undefined) Object.defineProperty(status, "cause", { value: cause, configurable: true, writable: true });
  return status;
}
