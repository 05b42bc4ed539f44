import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import { defaultCertificateSigningRequest } from "./certificatesigningrequests/defaults.ts";
import {
  certificateApprovalStrategy,
  certificateSigningRequestStatusStrategy,
  certificateSigningRequestStrategy,
} from "./certificatesigningrequests/strategy.ts";
import { certificateSigningRequestTable } from "./certificatesigningrequests/table.ts";

export function certificatesResources(): ResourceDefinition[] {
  return inGroup("certificates.k8s.io", [
    {
      resource: "certificatesigningrequests",
      kind: "CertificateSigningRequest",
      shortNames: ["csr"],
      namespaced: false,
      versions: [{ version: "v1", defaults: defaultCertificateSigningRequest }],
      strategy: certificateSigningRequestStrategy,
      statusStrategy: certificateSigningRequestStatusStrategy,
      subresources: {
        approval: {
          kind: "CertificateSigningRequest",
          verbs: ["get", "patch", "update"],
          handler: { type: "strategy", strategy: certificateApprovalStrategy },
        },
      },
      selectableFields: ({ spec }: CertificateSigningRequest) => ({
        "spec.signerName": String(spec?.signerName ?? ""),
      }),
      table: certificateSigningRequestTable,
    },
  ]);
}
