import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";

/** Sets signerName in objects that were stored before it became required. */
export function defaultCertificateSigningRequest(object: KubeObject): void {
  const { spec } = object as CertificateSigningRequest;
  if (spec && !spec.signerName && (object as CertificateSigningRequest).metadata.uid)
    spec.signerName = "kubernetes.io/legacy-unknown";
}
