import { humanDuration } from "@coxswain/apimachinery/objects/meta/time";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { age, tableOf } from "../../cells.ts";

export const certificateSigningRequestTable = tableOf<CertificateSigningRequest>("certificatesigningrequests", (csr, ages) => {
  const seconds = csr.spec?.expirationSeconds;
  return [
    csr.metadata.name ?? "",
    age(csr, ages),
    csr.spec?.signerName || "<none>",
    csr.spec?.username ?? "",
    seconds === undefined ? "<none>" : humanDuration(seconds * 1000),
    conditionText(csr),
  ];
});

function conditionText(csr: CertificateSigningRequest): string {
  const conditions = csr.status?.conditions ?? [];
  const types = conditions.map((c) => c.type);
  let text = types.includes("Denied") ? "Denied" : types.includes("Approved") ? "Approved" : "Pending";
  if (types.includes("Failed")) text += ",Failed";
  if (csr.status?.certificate) text += ",Issued";
  return text;
}
