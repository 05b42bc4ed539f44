/**
 * How long a request may take: the lesser of ?timeout and --request-timeout; long-running requests have no deadline.
 * Source: k8s.io/apiserver pkg/endpoints/filters/request_deadline.go
 */
import { badRequest } from "@coxswain/apimachinery/errors/status-error";
import { parseDuration } from "@coxswain/apimachinery/meta/time";

/**
 * @param timeout the query parameter, in Go's form: `34s`
 * @returns milliseconds
 * @throws StatusError 400 when the text is no duration; one that is not positive asks for nothing
 */
export function requestTimeoutMs(timeout: string | null, serverTimeoutMs: number): number {
  if (timeout === null || timeout === "") return serverTimeoutMs;
  const asked = parseDuration(timeout);
  if (asked === undefined) {
    throw badRequest(`invalid timeout specified in the request URL - time: invalid duration ${JSON.stringify(timeout)}`);
  }
  return asked <= 0 ? serverTimeoutMs : Math.min(asked, serverTimeoutMs);
}
