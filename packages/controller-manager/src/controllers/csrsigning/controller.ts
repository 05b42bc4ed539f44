import { done, type Result } from "@coxswain/apimachinery/controller/controller";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { certificateSigningRequests } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isKeyOf, keysOf } from "@coxswain/apimachinery/process/narrowing/keys";
import type { CertificateRequest } from "@coxswain/apimachinery/serving/certificates";
import { kubeletClientFault, kubeletServingFault } from "../../certificates/kubelet-rules.ts";
import { conditionOf, newCertificateController, readRequest, withCondition } from "../../certificates/requests.ts";
import type { SignerName } from "../../config/certificate-signing.ts";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { newSigningPairReader, type SigningPair } from "./signing-pair.ts";
import { validityOf } from "./validity.ts";

/**
 * csrsigning: issues certificates for approved requests of the four built-in signers, each with the key pair of its flags.
 * A request that violates the signer's rules gets the condition Failed.
 * Watches CertificateSigningRequests; writes their `status`.
 * Source: pkg/controller/certificates/signer/signer.go; cmd/kube-controller-manager/app/certificates.go
 */
export function newCsrSigningController(base: ControllerContext): Runnable | undefined {
  const { log, config } = base;
  const { files } = config.certificateSigning;
  if (files.size === 0) {
    log.info("Skipping CSR signer controller because no csr cert/key was specified");
    return undefined;
  }
  const readers = new Map<string, () => Promise<SigningPair>>();
  for (const signer of keysOf(signers)) {
    const pair = files.get(signer);
    if (pair !== undefined) readers.set(signer, newSigningPairReader(pair, log));
    else log.info("Skipping CSR signer: no key pair was specified for it", { signer });
  }
  const ctx: SigningContext = { ...base, readers };
  return newCertificateController(ctx, reconcile);
}

interface SigningContext extends ControllerContext {
  /** Readers of the key pairs, by signer name. */
  readonly readers: ReadonlyMap<string, () => Promise<SigningPair>>;
}

async function reconcile(ctx: SigningContext, csr: CertificateSigningRequest, signal: AbortSignal): Promise<Result> {
  const { signerName } = csr.spec;
  if (!isKeyOf(signers, signerName)) return done;
  const read = ctx.readers.get(signerName);
  if (read === undefined || !isToBeSigned(csr)) return done;
  const { csrPem, request } = await readRequest(csr);
  const usages = csr.spec.usages ?? [];
  const violation = signers[signerName](request, usages);
  const changed = violation === undefined ? await issued(ctx, csr, csrPem, await read()) : failed(ctx, csr, violation);
  await ctx.client.update(certificateSigningRequests, changed, { subresource: "status", signal });
  return done;
}

/** Validates a request; returns the reason for a rejection, or undefined. */
type SignerRule = (request: CertificateRequest, usages: readonly string[]) => string | undefined;

const signers: Readonly<Record<SignerName, SignerRule>> = {
  "kubernetes.io/kubelet-serving": kubeletServingFault,
  "kubernetes.io/kube-apiserver-client-kubelet": kubeletClientFault,
  "kubernetes.io/kube-apiserver-client": clientUsagesFault,
  // The legacy signer has no rules; it predates signer names.
  "kubernetes.io/legacy-unknown": () => undefined,
};

function clientUsagesFault(_request: CertificateRequest, usages: readonly string[]): string | undefined {
  const allowed = ["client auth", "digital signature", "key encipherment"];
  const other = usages.find((usage) => !allowed.includes(usage));
  if (other !== undefined) return `invalid usage for client certificate: ${other}`;
  return usages.includes("client auth") ? undefined : "missing required usage for client certificate: client auth";
}

function isToBeSigned(csr: CertificateSigningRequest): boolean {
  return (
    conditionOf(csr, "Approved") !== undefined &&
    conditionOf(csr, "Denied") === undefined &&
    conditionOf(csr, "Failed") === undefined
  );
}

function failed(ctx: ControllerContext, csr: CertificateSigningRequest, message: string): CertificateSigningRequest {
  return withCondition(csr, {
    type: "Failed",
    status: "True",
    reason: "SignerValidationFailure",
    message,
    lastUpdateTime: formatTime(ctx.clock.now()),
  });
}

async function issued(
  ctx: ControllerContext,
  csr: CertificateSigningRequest,
  csrPem: string,
  ca: SigningPair,
): Promise<CertificateSigningRequest> {
  const validity = validityOf({
    requestedSeconds: csr.spec.expirationSeconds,
    longestMs: ctx.config.certificateSigning.durationMs,
    signerNotAfter: ca.notAfter,
    now: ctx.clock.now(),
  });
  const { signCertificateRequest } = await import("@coxswain/apimachinery/serving/certificates");
  const pem = await signCertificateRequest({ csrPem, ca, usages: csr.spec.usages ?? [], ...validity });
  return { ...csr, status: { ...csr.status, certificate: Buffer.from(pem).toString("base64") } };
}
