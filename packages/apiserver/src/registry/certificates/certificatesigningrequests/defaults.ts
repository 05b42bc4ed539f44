import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";

/** Sets signerName in objects that were stored before it became required. */
export function defaultCertificateSigningRequest(object: CertificateSigningRequest): void {
  const { spec } = object;
  if (spec && !spec.signerName && object.metadata.uid) spec.signerName = "kubernetes.io/legacy-unknown";
}
