import type { CertificateRequest } from "@coxswain/apimachinery/serving/certificates";

/**
 * Validates a request for a kubelet client or serving certificate.
 * @returns the reason for a rejection; undefined when valid
 * Source: pkg/apis/certificates/helpers.go, ValidateKubeletClientCSR and ValidateKubeletServingCSR
 */
type KubeletRule = (request: CertificateRequest, usages: readonly string[]) => string | undefined;

/** A client certificate: for `system:node:<name>` in the organization system:nodes, without subjectAltNames. */
export const kubeletClientFault: KubeletRule = (request, usages) => {
  if (!onlySystemNodes(request)) return notSystemNodes;
  if (request.dnsNames.length > 0) return "DNS subjectAltNames are not allowed";
  if (request.emails.length > 0) return "Email subjectAltNames are not allowed";
  if (request.ips.length > 0) return "IP subjectAltNames are not allowed";
  if (request.uris.length > 0) return "URI subjectAltNames are not allowed";
  if (!namesNode(request)) return notNodeName;
  return usagesFault(usages, ["client auth", "digital signature", "key encipherment"]);
};

/** A serving certificate: as that of a client, but with DNS names or IP addresses. */
export const kubeletServingFault: KubeletRule = (request, usages) => {
  if (!onlySystemNodes(request)) return notSystemNodes;
  if (request.dnsNames.length === 0 && request.ips.length === 0) return "DNS or IP subjectAltName is required";
  if (request.emails.length > 0) return "Email subjectAltNames are not allowed";
  if (request.uris.length > 0) return "URI subjectAltNames are not allowed";
  return (
    usagesFault(usages, ["digital signature", "key encipherment", "server auth"]) ??
    (namesNode(request) ? undefined : notNodeName)
  );
};

const notSystemNodes = "subject organization is not system:nodes";
const notNodeName = "subject common name does not begin with system:node:";

function onlySystemNodes({ organizations }: CertificateRequest): boolean {
  return organizations.length === 1 && organizations[0] === "system:nodes";
}

function namesNode({ commonName }: CertificateRequest): boolean {
  return commonName.startsWith("system:node:");
}

/** @param wanted the exact set of usages, sorted */
function usagesFault(usages: readonly string[], wanted: readonly string[]): string | undefined {
  const same = new Set(usages).size === wanted.length && wanted.every((usage) => usages.includes(usage));
  return same ? undefined : `usages did not match [${wanted.join(" ")}]`;
}
