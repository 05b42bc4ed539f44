import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { newCertificateRequest } from "@coxswain/apimachinery/serving/certificates";

export interface RequestedCertificate {
  name?: string;
  username?: string;
  signer?: string;
  usages?: string[];
  commonName?: string;
  organizations?: string[];
  dnsNames?: string[];
  conditions?: { type: string; lastUpdateTime?: string; message?: string }[];
  expirationSeconds?: number;
}

/** A node's request for its client certificate, with overrides. */
export async function aCertificateRequest(requested: RequestedCertificate = {}): Promise<CertificateSigningRequest> {
  const { commonName = "system:node:n1", organizations = ["system:nodes"], dnsNames = [], conditions = [] } = requested;
  const { csrPem } = await newCertificateRequest({ commonName, organizations, dnsNames });
  return {
    metadata: { name: requested.name ?? "csr-1", creationTimestamp: "2024-01-01T00:00:00Z" },
    spec: {
      request: Buffer.from(csrPem).toString("base64"),
      signerName: requested.signer ?? "kubernetes.io/kube-apiserver-client-kubelet",
      usages: requested.usages ?? ["digital signature", "key encipherment", "client auth"],
      username: requested.username ?? "system:bootstrap:abcdef",
      groups: ["system:bootstrappers"],
      ...(requested.expirationSeconds !== undefined && { expirationSeconds: requested.expirationSeconds }),
    },
    status: { conditions: conditions.map((condition) => ({ status: "True" as const, ...condition })) },
  };
}
