import { done, type Result } from "@coxswain/apimachinery/controller/controller";
import type { ResourceAttributes, SubjectAccessReview } from "@coxswain/apimachinery/objects/schema/kinds/authorization/v1";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { certificateSigningRequests, subjectAccessReviews } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { CertificateRequest } from "@coxswain/apimachinery/serving/certificates";
import type { RateLimiter } from "@coxswain/apimachinery/workqueue/rate-limiters";
import { kubeletClientFault } from "../../certificates/kubelet-rules.ts";
import {
  backoffOfRequests,
  conditionOf,
  newCertificateController,
  readRequest,
  withCondition,
} from "../../certificates/requests.ts";
import type { ControllerContext, Runnable } from "../../controller-context.ts";

/**
 * csrapproving: approves kubelet client certificates if a SubjectAccessReview permits the requester (`selfnodeclient` for
 * its own name, `nodeclient` for any). Other requests are left for manual approval.
 * Watches CertificateSigningRequests; writes their `approval`.
 * Source: pkg/controller/certificates/approver/sarapprove.go
 */
export function newCsrApprovingController(base: ControllerContext): Runnable {
  const ctx: ApprovingContext = { ...base, refused: backoffOfRequests() };
  const { refused } = ctx;
  base.informers
    .for<CertificateSigningRequest>(certificateSigningRequests)
    .addHandler({ deleted: ({ metadata }) => refused.forget(metadata.name ?? "") });
  return newCertificateController(ctx, reconcile);
}

interface ApprovingContext extends ControllerContext {
  /** Backoff of requests that no SubjectAccessReview permitted, by name. */
  readonly refused: RateLimiter<string>;
}

async function reconcile(ctx: ApprovingContext, csr: CertificateSigningRequest, signal: AbortSignal): Promise<Result> {
  if (conditionOf(csr, "Approved") !== undefined || conditionOf(csr, "Denied") !== undefined) return done;
  const { name = "" } = csr.metadata;
  const { request } = await readRequest(csr);
  const recognized = recognizers.filter(({ recognizes }) => recognizes(csr, request));
  for (const { subresource, message } of recognized) {
    if (!(await isAllowedToCreate(ctx, csr, subresource, signal))) continue;
    const approval = { type: "Approved", status: "True" as const, reason: "AutoApproved", message };
    await ctx.client.update(certificateSigningRequests, withCondition(csr, approval), { subresource: "approval", signal });
    ctx.refused.forget(name);
    return done;
  }
  if (recognized.length === 0) return done;
  // Retried, because the role may be bound later.
  ctx.log.v(4)?.info("recognized csr but subject access review was not approved", {
    csr: name,
    tried: recognized.map(({ subresource }) => subresource),
  });
  return { requeueAfterMs: ctx.refused.when(name) };
}

interface Recognizer {
  /** Subresource of certificatesigningrequests that the requester must be allowed to `create`. */
  readonly subresource: string;
  readonly message: string;
  readonly recognizes: (csr: CertificateSigningRequest, request: CertificateRequest) => boolean;
}

const recognizers: readonly Recognizer[] = [
  {
    subresource: "selfnodeclient",
    message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
    recognizes: (csr, request) => csr.spec.username === request.commonName && isNodeClient(csr, request),
  },
  {
    subresource: "nodeclient",
    message: "Auto approving kubelet client certificate after SubjectAccessReview.",
    recognizes: isNodeClient,
  },
];

function isNodeClient({ spec }: CertificateSigningRequest, request: CertificateRequest): boolean {
  return (
    spec.signerName === "kubernetes.io/kube-apiserver-client-kubelet" &&
    kubeletClientFault(request, spec.usages ?? []) === undefined
  );
}

async function isAllowedToCreate(
  ctx: ControllerContext,
  { spec }: CertificateSigningRequest,
  subresource: string,
  signal: AbortSignal,
): Promise<boolean> {
  const { username = "", uid, groups, extra } = spec;
  const resourceAttributes: ResourceAttributes = {
    group: "certificates.k8s.io",
    resource: "certificatesigningrequests",
    subresource,
    verb: "create",
  };
  const review: SubjectAccessReview = {
    metadata: {},
    spec: {
      user: username,
      ...(uid !== undefined && { uid }),
      ...(groups !== undefined && { groups }),
      ...(extra !== undefined && { extra }),
      resourceAttributes,
    },
  };
  const answer = await ctx.client.create<SubjectAccessReview>(subjectAccessReviews, review, { signal });
  return answer.status?.allowed === true;
}
