import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import {
  duplicate,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
  tooLong,
} from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/schema/kinds/certificates/v1";
import { isDns1123Label, isDns1123Subdomain } from "../../field-checks.ts";
import { certificateFault, certificateRequestFault, goBytes } from "./pem.ts";

type Csr = CertificateSigningRequest;

const knownUsages = [
  "any",
  "cert sign",
  "client auth",
  "code signing",
  "content commitment",
  "crl sign",
  "data encipherment",
  "decipher only",
  "digital signature",
  "email protection",
  "encipher only",
  "ipsec end system",
  "ipsec tunnel",
  "ipsec user",
  "key agreement",
  "key encipherment",
  "microsoft sgc",
  "netscape sgc",
  "ocsp signing",
  "s/mime",
  "server auth",
  "signing",
  "timestamping",
];

const legacySigner = "kubernetes.io/legacy-unknown";

/** Source: pkg/apis/certificates/validation/validation.go */
export function validateCertificateSigningRequest(csr: Csr): FieldError[] {
  const errors: FieldError[] = [];
  const { spec } = csr;
  const request = Buffer.from(spec?.request ?? "", "base64");
  const fault = certificateRequestFault(request);
  if (fault !== undefined) errors.push(invalidValue("spec.request", goBytes(request), fault));
  const usages: readonly string[] = spec?.usages ?? [];
  if (usages.length === 0) errors.push(required("spec.usages", "usages must be provided"));
  for (const [i, usage] of usages.entries())
    if (!knownUsages.includes(usage)) errors.push(notSupported(index("spec.usages", i), usage, knownUsages));
  for (const [i, usage] of usages.entries())
    if (usages.indexOf(usage) < i) errors.push(duplicate(index("spec.usages", i), usage));
  if (spec?.signerName === legacySigner)
    errors.push(invalidValue("spec.signerName", legacySigner, "the legacy signerName is not allowed via this API version"));
  else errors.push(...checkSignerName(spec?.signerName ?? "", "spec.signerName"));
  const seconds = spec?.expirationSeconds;
  if (seconds !== undefined && seconds < 600) {
    errors.push(invalidValue("spec.expirationSeconds", seconds, "may not specify a duration less than 600 seconds (10 minutes)"));
  }
  return errors;
}

export function validateCertificateSigningRequestUpdate(next: Csr, current: Csr): FieldError[] {
  return [
    ...validateCertificateSigningRequest(next),
    ...withoutConditionRemoved(next, current, ["Approved", "Denied", "Failed"]),
  ];
}

export function validateStatusUpdate(next: Csr, current: Csr): FieldError[] {
  const errors = [...checkConditions(next, current), ...withoutConditionRemoved(next, current, ["Approved", "Denied", "Failed"])];
  const certificate = next.status?.certificate;
  if (!semanticEqual(certificate, current.status?.certificate)) {
    if (current.status?.certificate)
      errors.push(forbiddenField("status.certificate", "updates may not set certificate content once it is set"));
    else if (certificate) errors.push(...checkCertificate(certificate));
  }
  return errors;
}

export function validateApprovalUpdate(next: Csr, current: Csr): FieldError[] {
  const errors = [...checkConditions(next, current), ...withoutConditionRemoved(next, current, ["Failed", "Approved", "Denied"])];
  return errors;
}

function checkConditions(next: Csr, current: Csr): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  let approved = false;
  let denied = false;
  for (const [i, condition] of (next.status?.conditions ?? []).entries()) {
    const at = index("status.conditions", i);
    const { type } = condition;
    const status: string = condition.status ?? "";
    if (!type) errors.push(required(child(at, "type"), ""));
    if (status === "") errors.push(required(child(at, "status")));
    else if (!["True", "False", "Unknown"].includes(status))
      errors.push(notSupported(child(at, "status"), status, ["False", "True", "Unknown"]));
    else if (["Approved", "Denied", "Failed"].includes(type) && status !== "True") {
      errors.push(notSupported(child(at, "status"), status, ["True"]));
    }
    if (type === "Approved") approved = true;
    if (type === "Denied") denied = true;
    if (seen.has(type)) errors.push(duplicate(child(at, "type"), type));
    seen.add(type);
  }
  const before = new Set((current.status?.conditions ?? []).map((c) => c.type));
  if (approved && denied && !(before.has("Approved") && before.has("Denied"))) {
    errors.push(
      invalidValue("status.conditions", next.status?.conditions ?? [], "Approved and Denied conditions are mutually exclusive"),
    );
  }
  return errors;
}

function withoutConditionRemoved(next: Csr, current: Csr, types: readonly string[]): FieldError[] {
  const errors: FieldError[] = [];
  for (const type of types) {
    const old = (current.status?.conditions ?? []).filter((c) => c.type === type);
    const now = (next.status?.conditions ?? []).filter((c) => c.type === type);
    if (semanticEqual(old, now)) continue;
    if (old.length > 0 && now.length === 0) {
      errors.push(forbiddenField("status.conditions", `updates may not remove a condition of type "${type}"`));
    } else if (old.length === 0 && now.length > 0) {
    } else if (old.length > 0) {
      errors.push(forbiddenField("status.conditions", `updates may not modify a condition of type "${type}"`));
    }
  }
  return errors;
}

function checkCertificate(certificate: string): FieldError[] {
  const fault = certificateFault(Buffer.from(certificate, "base64"));
  return fault === undefined ? [] : [invalidValue("status.certificate", "<certificate data>", fault)];
}

/** `kubernetes.io/kube-apiserver-client`: a domain, a slash, dot-separated labels. */
export function checkSignerName(name: string, path: string): FieldError[] {
  if (name === "") return [required(path)];
  const parts = name.split("/");
  if (parts.length !== 2) {
    return [invalidValue(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")];
  }
  const [domain = "", rest = ""] = parts;
  const errors: FieldError[] = [];
  if (domain === "" || rest === "" || domain.split(".").length < 2) {
    errors.push(invalidValue(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'"));
    if (domain === "" || rest === "") return errors;
  }
  for (const message of isDns1123Subdomain(domain))
    errors.push(invalidValue(path, domain, `validating label "${domain}": ${message}`));
  for (const label of rest.split(".")) {
    for (const message of isDns1123Label(label)) errors.push(invalidValue(path, rest, `validating label "${label}": ${message}`));
  }
  if (name.length > 571) errors.push(tooLong(path, name, 571));
  return errors;
}
