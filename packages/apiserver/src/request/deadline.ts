/**
 * The timeout of a request: the lesser of ?timeout and --request-timeout; long-running requests have none.
 * Source: k8s.io/apiserver pkg/endpoints/filters/request_deadline.go
 */
import { badRequest } from "@coxswain/apimachinery/objects/errors/status-error";
import { parseDuration } from "@coxswain/apimachinery/objects/meta/time";

/**
 * @param timeout the query parameter, a Go duration: `34s`; values that are not positive are ignored
 * @returns milliseconds
 * @throws StatusError 400 when it is not a duration
 */
export function requestTimeoutMs(timeout: string | null, serverTimeoutMs: number): number {
  if (timeout === null || timeout === "") return serverTimeoutMs;
  const requested = parseDuration(timeout);
  if (requested === undefined) {
    throw badRequest(`invalid timeout specified in the request URL - time: invalid duration ${JSON.stringify(timeout)}`);
  }
  return requested <= 0 ? serverTimeoutMs : Math.min(requested, serverTimeoutMs);
}
