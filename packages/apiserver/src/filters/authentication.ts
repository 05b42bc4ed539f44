/**
 * Authenticates requests. A 401 response does not contain the reason; the log does.
 * Source: k8s.io/apiserver pkg/endpoints/filters/authentication.go
 */
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { messageOf } from "@coxswain/apimachinery/errors/message";
import { StatusError, unauthorized } from "@coxswain/apimachinery/errors/status-error";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { Authenticator } from "@coxswain/apimachinery/serving/authentication/authenticator";
import type { ServerRequest } from "../request/server-request.ts";
import type { Filter } from "./filter.ts";
import type { RequestMetrics } from "./metrics.ts";

export interface AuthenticationOptions {
  clock: Clock;
  authenticate: Authenticator;
  /** The audiences of which a credential must have at least one; empty: not checked. */
  apiAudiences: readonly string[];
  metrics: RequestMetrics;
  log: Logger;
  /** Called before a request is rejected with 401. */
  onRefused?: ((request: ServerRequest) => Promise<void>) | undefined;
}

/** Counts an attempt that began at `startedMs`. */
type Ended = (startedMs: number) => void;

/** Sets `request.user`. @throws Unauthorized; StatusErrors of the backend with code 500 or above pass unchanged */
export function authentication(options: AuthenticationOptions): Filter {
  const { metrics, log } = options;
  const [success, failure, error] = ["success", "failure", "error"].map((result) => {
    const attempts = metrics.authenticationAttempts.labels(result);
    const duration = metrics.authenticationDuration.labels(result);
    return (startedMs: number): void => {
      attempts.inc();
      duration.observe((options.clock.monotonic() - startedMs) / 1000);
    };
  }) as [Ended, Ended, Ended];
  const refusal = async (request: ServerRequest): Promise<Error> => {
    await options.onRefused?.(request);
    return unauthorized("Unauthorized");
  };
  return async (request, next) => {
    const startedMs = options.clock.monotonic();
    const result = await options.authenticate(request.exchange).catch(async (err: unknown) => {
      error(startedMs);
      // The backend that verifies tokens may be down, which is not the client's fault.
      if (err instanceof StatusError && err.code >= 500) throw err;
      log.warn("Unable to authenticate the request", { err: messageOf(err) });
      throw await refusal(request);
    });
    if (result === undefined) {
      failure(startedMs);
      throw await refusal(request);
    }
    if (result.audiences !== undefined && options.apiAudiences.length > 0) {
      if (!result.audiences.some((audience) => options.apiAudiences.includes(audience))) {
        error(startedMs);
        throw await refusal(request);
      }
    }
    success(startedMs);
    metrics.authenticatedUserRequests.labels(compressUser(result.user.name)).inc();
    // Credentials for this server must not be forwarded to proxied servers.
    delete request.exchange.headers.authorization;
    request.user = result.user;
    request.credentialNotes = result.auditAnnotations;
    return next(request);
  };
}

const namedInMetrics: ReadonlySet<string> = new Set([
  ...["admin", "client", "kube_proxy", "kubelet"],
  "system:serviceaccount:kube-system:default",
]);

/** Bounds the number of metric series, and keeps user names out of them. Source: pkg/endpoints/filters/metrics.go */
function compressUser(name: string): string {
  if (namedInMetrics.has(name)) return name;
  return name.includes("@") ? "email_id" : "other";
}
