import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import type {
  CertificateSigningRequest,
  CertificateSigningRequestCondition,
} from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { certificateSigningRequests } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { CertificateRequest } from "@coxswain/apimachinery/serving/certificates";
import { exponentialBackoff, longestOf, overallBucket, type RateLimiter } from "@coxswain/apimachinery/workqueue/rate-limiters";
import type { ControllerContext } from "../controller-context.ts";
import { defineController } from "../define-controller.ts";

/** Shared by approver and signer: a controller for requests without a certificate, and parsing of requests. */

/**
 * Creates a controller that calls `handle` for requests without a certificate.
 * Source: pkg/controller/certificates/certificate_controller.go
 */
export function newCertificateController<C extends ControllerContext>(
  ctx: C,
  handle: (ctx: C, csr: CertificateSigningRequest, signal: AbortSignal) => Promise<Result>,
): Controller {
  const informer = ctx.informers.for<CertificateSigningRequest>(certificateSigningRequests);
  return defineController(ctx, {
    name: "certificate",
    sources: [enqueueSelf(informer)],
    async reconcile(_ctx, name, signal) {
      const csr = informer.lister.get(name);
      return csr === undefined || csr.status?.certificate ? done : handle(ctx, csr, signal);
    },
    workers: 5,
    limiter: limiterOfRequests(ctx.clock),
  });
}

/** Beyond the backoff of each request, 10 of all requests are tried again in a second, the first 100 at once. */
export const limiterOfRequests = (clock: Clock): RateLimiter<string> =>
  longestOf(backoffOfRequests(), overallBucket({ qps: 10, burst: 100, clock }));

/** Backoff for requests that cannot be processed. */
export function backoffOfRequests(): RateLimiter<string> {
  return exponentialBackoff(200, 1_000_000);
}

export function conditionOf(csr: CertificateSigningRequest, type: string): CertificateSigningRequestCondition | undefined {
  return csr.status?.conditions?.find((condition) => condition.type === type);
}

/**
 * Parses `spec.request`.
 * @throws Error when it is malformed or its signature does not match its key
 */
export async function readRequest({
  metadata,
  spec,
}: CertificateSigningRequest): Promise<{ csrPem: string; request: CertificateRequest }> {
  const { parseCertificateRequest } = await import("@coxswain/apimachinery/serving/certificates");
  const csrPem = Buffer.from(spec.request, "base64").toString("utf8");
  try {
    return { csrPem, request: await parseCertificateRequest(csrPem) };
  } catch (err) {
    throw new Error(`unable to parse csr ${metadata.name}`, { cause: err });
  }
}

/** Returns the request with an added condition, for its `approval` or `status` subresource. */
export function withCondition(
  csr: CertificateSigningRequest,
  condition: CertificateSigningRequestCondition,
): CertificateSigningRequest {
  return { ...csr, status: { ...csr.status, conditions: [...(csr.status?.conditions ?? []), condition] } };
}
