/**
 * The three plugins for CertificateSigningRequests: permission to approve and to sign for a signer, and restrictions on the
 * subject of client certificates.
 * Source: plugin/pkg/admission/certificates/{approval,signing,subjectrestriction}/admission.go
 */
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Authorizer } from "../../authorization/authorizer.ts";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";

interface SigningRequest extends KubeObject {
  spec: { request?: string; signerName?: string };
  status?: { certificate?: string; conditions?: { type: string }[] };
}

/** The resource of all three plugins. */
const signingRequests = ["certificatesigningrequests.certificates.k8s.io"];

/** CertificateApproval: an update of `/approval` requires the verb `approve` on the signer of the stored request. */
export function certificateApproval(ctx: PluginContext): AdmissionPlugin<SigningRequest> {
  return {
    name: "CertificateApproval",
    handles: (operation) => operation === "UPDATE",
    resources: signingRequests,
    async validate(attributes) {
      if (!isRequest(attributes) || attributes.subresource !== "approval") return;
      const { spec } = attributes.oldObject!;
      if (!(await mayUseSigner(ctx.authorize, attributes, "approve", spec.signerName ?? ""))) {
        throw refuse(attributes, `user not permitted to approve requests with signerName ${JSON.stringify(spec.signerName)}`);
      }
    },
  };
}

/**
 * CertificateSigning: a `/status` update that changes the certificate or the conditions requires the verb `sign` on the signer.
 */
export function certificateSigning(ctx: PluginContext): AdmissionPlugin<SigningRequest> {
  return {
    name: "CertificateSigning",
    handles: (operation) => operation === "UPDATE",
    resources: signingRequests,
    async validate(attributes) {
      if (!isRequest(attributes) || attributes.subresource !== "status") return;
      const [before, next] = [attributes.oldObject!, attributes.object!];
      const sameConditions = semanticEqual(before.status?.conditions, next.status?.conditions);
      if (before.status?.certificate === next.status?.certificate && sameConditions) return;
      const { signerName } = before.spec;
      if (!(await mayUseSigner(ctx.authorize, attributes, "sign", signerName ?? ""))) {
        throw refuse(attributes, `user not permitted to sign requests with signerName ${JSON.stringify(signerName)}`);
      }
    },
  };
}

/**
 * CertificateSubjectRestriction: refuses new requests for the signer kubernetes.io/kube-apiserver-client with the organization
 * system:masters.
 */
export const certificateSubjectRestriction = (): AdmissionPlugin<SigningRequest> => ({
  name: "CertificateSubjectRestriction",
  handles: (operation) => operation === "CREATE",
  resources: signingRequests,
  async validate(attributes) {
    if (!isRequest(attributes) || attributes.subresource !== "") return;
    const { spec } = attributes.object!;
    if (spec.signerName !== "kubernetes.io/kube-apiserver-client") return;
    const { parseCertificateRequest } = await import("@coxswain/apimachinery/serving/certificates");
    let organizations: readonly string[];
    try {
      ({ organizations } = await parseCertificateRequest(Buffer.from(spec.request ?? "", "base64").toString("utf8")));
    } catch (err) {
      throw refuse(attributes, `failed to parse CSR: ${messageOf(err)}`);
    }
    if (organizations.includes("system:masters")) {
      throw refuse(attributes, "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed");
    }
  },
});

function isRequest({ resource }: AdmissionAttributes): boolean {
  return resource.group === "certificates.k8s.io" && resource.resource === "certificatesigningrequests";
}

/** Permission is checked for the signer's name, then for all signers of its domain: `example.com/*`. */
async function mayUseSigner(
  authorize: Authorizer,
  attributes: AdmissionAttributes,
  verb: string,
  signer: string,
): Promise<boolean> {
  const base = {
    user: attributes.user,
    verb,
    isResourceRequest: true,
    namespace: "",
    group: "certificates.k8s.io",
    version: "*",
    resource: "signers",
    subresource: "",
    path: "",
  };
  for (const name of [signer, `${signer.split("/")[0]}/*`]) {
    if ((await authorize({ ...base, name })).decision === "allow") return true;
  }
  return false;
}
