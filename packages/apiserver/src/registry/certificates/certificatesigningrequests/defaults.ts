import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/schema/kinds/certificates/v1";

/** Kept for objects that were stored before signerName was required. */
export function defaultCertificateSigningRequest(object: KubeObject): void {
  const { spec } = object as CertificateSigningRequest;
  if (spec && !spec.signerName && (object as CertificateSigningRequest).metadata.uid)
    spec.signerName = "kubernetes.io/legacy-unknown";
}
