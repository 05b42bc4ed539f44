import { X509Certificate } from "node:crypto";
import { certificateSigningRequests } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newCa } from "@coxswain/apimachinery/serving/certificates";
import { temporaryFiles } from "../cluster/temporary-files.ts";
import { asKubelet, asPerson, type CertificateRequests, newCertificateRequests } from "./certificate-requests.ts";
import { allFaults, lasting, type Plan } from "./plan.ts";

interface Prepared {
  readonly flags: readonly string[];
  readonly requests: CertificateRequests;
}

let prepared: Promise<Prepared> | undefined;

async function prepare(): Promise<Prepared> {
  const { certPem, keyPem } = await newCa({ commonName: "simulated", now: Date.UTC(2021, 11, 31) });
  const files = temporaryFiles({ "signer.pem": certPem, "signer.key": keyPem });
  return {
    flags: [`--cluster-signing-cert-file=${files["signer.pem"]}`, `--cluster-signing-key-file=${files["signer.key"]}`],
    requests: await newCertificateRequests(),
  };
}

const prepareOnce = (): Promise<Prepared> => {
  prepared ??= prepare();
  return prepared;
};

interface Condition {
  readonly type: string;
}

/** Nodes' requests are approved and signed; those of persons are signed when someone approves them, and left alone before. */
export const certificatesPlan: Plan = {
  name: "certificates",
  controllers: ["csrapproving", "csrsigning"],
  apis: ["certificates.k8s.io/v1"],
  faults: allFaults,
  rules: lasting,
  managerFlags: async () => (await prepareOnce()).flags,
  async act(user) {
    const { node, person } = (await prepareOnce()).requests;
    for (const name of ["node-a", "node-b"])
      await user.create(certificateSigningRequests, { metadata: { name }, spec: { ...asKubelet, request: node } });
    for (const name of ["approved", "pending"])
      await user.create(certificateSigningRequests, { metadata: { name }, spec: { ...asPerson, request: person } });
    await user.pause(user.random() * 6_000);
    const approval = { type: "Approved", status: "True", reason: "Known", message: "one of the crew" };
    await user.change(
      certificateSigningRequests,
      { namespace: "", name: "approved" },
      (request) => {
        request.status = { ...request.status, conditions: [approval] };
      },
      "approval",
    );
    await user.pause(user.random() * 4_000);
  },
  missing(view) {
    for (const [name, commonName] of [
      ["node-a", "system:node:edge-0"],
      ["node-b", "system:node:edge-0"],
      ["approved", "jane"],
    ]) {
      const { conditions = [], certificate } = view.get("certificatesigningrequests", `${name}`)?.status ?? {};
      const types = (conditions as Condition[]).map(({ type }) => type).join(); // cast: conditions of the API
      if (types !== "Approved") return `${name} has the conditions ${types}`;
      if (certificate === undefined) return `${name} has no certificate`;
      const { subject } = new X509Certificate(Buffer.from(certificate, "base64"));
      if (!subject.includes(`CN=${commonName}`)) return `${name} has a certificate for ${subject}`;
    }
    const { status } = view.get("certificatesigningrequests", "pending") ?? {};
    return status?.certificate || status?.conditions?.length ? "a request is signed that nobody approved" : undefined;
  },
};
