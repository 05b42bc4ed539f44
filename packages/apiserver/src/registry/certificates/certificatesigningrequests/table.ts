import { humanDuration } from "@coxswain/apimachinery/objects/meta/time";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { age, ageColumn, nameColumn, tableOf, text } from "../../cells.ts";

export const certificateSigningRequestTable = tableOf<CertificateSigningRequest>(
  [
    nameColumn,
    ageColumn,
    text("SignerName", "Indicates the requested signer, and is a qualified name."),
    text("Requestor", "Requestor is the user that created the request"),
    text(
      "RequestedDuration",
      "expirationSeconds is the requested duration of validity of the issued certificate. The certificate signer may issue a certificate with a different validity duration so a client must check the delta between the notBefore and and notAfter fields in the issued certificate to determine the actual duration.",
    ),
    text("Condition", "Condition of the request"),
  ],
  (csr, ages) => {
    const seconds = csr.spec?.expirationSeconds;
    return [
      csr.metadata.name ?? "",
      age(csr, ages),
      csr.spec?.signerName || "<none>",
      csr.spec?.username ?? "",
      seconds === undefined ? "<none>" : humanDuration(seconds * 1000),
      conditionText(csr),
    ];
  },
);

function conditionText(csr: CertificateSigningRequest): string {
  const conditions = csr.status?.conditions ?? [];
  const types = conditions.map((c) => c.type);
  let text = types.includes("Denied") ? "Denied" : types.includes("Approved") ? "Approved" : "Pending";
  if (types.includes("Failed")) text += ",Failed";
  if (csr.status?.certificate) text += ",Issued";
  return text;
}
