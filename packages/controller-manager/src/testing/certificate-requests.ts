import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { newCertificateRequest } from "@coxswain/apimachinery/serving/certificates";

export interface AskedFor {
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
export async function aCertificateRequest(asked: AskedFor = {}): Promise<CertificateSigningRequest> {
  const { commonName = "system:node:n1", organizations = ["system:nodes"], dnsNames = [], conditions = [] } = asked;
  const { csrPem } = await newCertificateRequest({ commonName, organizations, dnsNames });
  return {
    metadata: { name: asked.name ?? "csr-1", creationTimestamp: "2024-01-01T00:00:00Z" },
    spec: {
      request: Buffer.from(csrPem).toString("base64"),
      signerName: asked.signer ?? "kubernetes.io/kube-apiserver-client-kubelet",
      usages: asked.usages ?? ["digital signature", "key encipherment", "client auth"],
      username: asked.username ?? "system:bootstrap:abcdef",
      groups: ["system:bootstrappers"],
      ...(asked.expirationSeconds !== undefined && { expirationSeconds: asked.expirationSeconds }),
    },
    status: { conditions: conditions.map((condition) => ({ status: "True" as const, ...condition })) },
  };
}
