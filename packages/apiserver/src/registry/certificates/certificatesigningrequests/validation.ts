import {
  child,
  duplicate,
  type FieldError,
  forbiddenField,
  invalidValue,
  required,
  tooLong,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { differencesText } from "@coxswain/apimachinery/objects/meta/differences";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { CertificateSigningRequest } from "@coxswain/apimachinery/objects/schema/kinds/certificates/v1";
import { dns1123LabelProblems, dns1123SubdomainProblems } from "../../field-checks.ts";
import { each, optionalOneOf, requiredOneOf, unique } from "../../rules.ts";
import knownUsages from "./known-usages.json" with { type: "json" };
import { certificateFault, certificateRequestFault, goBytes } from "./pem.ts";

type Csr = CertificateSigningRequest;

const legacySigner = "kubernetes.io/legacy-unknown";

/** Permissions of the subresource. */
interface Options {
  /** May add and change Approved and Denied conditions (`/approval`). */
  readonly mayApprove?: boolean;
  /** May set the certificate (`/status`). */
  readonly mayIssue?: boolean;
}

/** Source: pkg/apis/certificates/validation/validation.go */
export const validateCertificateSigningRequest = (csr: Csr): FieldError[] => validateCsr(csr, undefined);
export const validateCertificateSigningRequestUpdate = (next: Csr, current: Csr): FieldError[] =>
  validateUpdate(next, current, {});
/** An update of `/status`: may set the certificate, and change other conditions than Approved and Denied. */
export const validateStatusUpdate = (next: Csr, current: Csr): FieldError[] => validateUpdate(next, current, { mayIssue: true });
/** An update of `/approval`: may change the conditions Approved and Denied, not the certificate. */
export const validateApprovalUpdate = (next: Csr, current: Csr): FieldError[] =>
  validateUpdate(next, current, { mayApprove: true });

/** @param current the stored object; errors that it already has are tolerated */
function validateCsr(csr: Csr, current: Csr | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const { spec } = csr;
  const request = Buffer.from(spec?.request ?? "", "base64");
  const fault = certificateRequestFault(request);
  if (fault !== undefined) errors.push(invalidValue("spec.request", goBytes(request), fault));
  const usages: readonly string[] = spec?.usages ?? [];
  const stored: readonly string[] = current?.spec?.usages ?? [];
  if (usages.length === 0) errors.push(required("spec.usages", "usages must be provided"));
  if (stored.every((usage) => knownUsages.includes(usage)))
    errors.push(...each(usages, "spec.usages", (usage, at) => optionalOneOf(usage, knownUsages, at)));
  if (isUnique(stored)) errors.push(...unique(usages, "spec.usages", (usage) => usage));
  if (spec?.signerName === legacySigner && current?.spec?.signerName !== legacySigner)
    errors.push(invalidValue("spec.signerName", legacySigner, "the legacy signerName is not allowed via this API version"));
  else errors.push(...checkSignerName(spec?.signerName ?? "", "spec.signerName"));
  const seconds = spec?.expirationSeconds;
  if (seconds !== undefined && seconds !== null && seconds < 600) {
    errors.push(invalidValue("spec.expirationSeconds", seconds, "may not specify a duration less than 600 seconds (10 minutes)"));
  }
  return [...errors, ...checkConditions(csr, current), ...checkCertificate(csr, current)];
}

function isUnique(list: readonly string[]): boolean {
  return new Set(list).size === list.length;
}

function checkCertificate(csr: Csr, current: Csr | undefined): FieldError[] {
  const [certificate, issued] = [csr.status?.certificate, current?.status?.certificate];
  const fault = (text: string | undefined): string | undefined =>
    text ? certificateFault(Buffer.from(text, "base64")) : undefined;
  const own = fault(certificate);
  if (own === undefined || certificate === issued || fault(issued) !== undefined) return [];
  return [invalidValue("status.certificate", "<certificate data>", own)];
}

const decisions = ["Approved", "Denied"];
const lasting = [...decisions, "Failed"];

function validateUpdate(next: Csr, current: Csr, { mayApprove, mayIssue }: Options): FieldError[] {
  const errors = validateCsr(next, current);
  const forbid = (field: string, text: string): void => void errors.push(forbiddenField(`status.${field}`, text));
  for (const type of lasting) {
    const [old, now] = [conditionsOf(current, type), conditionsOf(next, type)];
    if (now.length < old.length) forbid("conditions", `updates may not remove a condition of type ${goQuote(type)}`);
  }
  for (const type of mayApprove ? [] : decisions) {
    const [old, now] = [conditionsOf(current, type), conditionsOf(next, type)];
    if (now.length > old.length) forbid("conditions", `updates may not add a condition of type ${goQuote(type)}`);
    else if (now.length === old.length && !semanticEqual(old, now)) {
      forbid("conditions", `updates may not modify a condition of type ${goQuote(type)}\n${differencesText(old, now)}`);
    }
  }
  const [certificate, issued] = [next.status?.certificate ?? "", current.status?.certificate ?? ""];
  if (certificate === issued) return errors;
  if (!mayIssue) forbid("certificate", "updates may not set certificate content");
  else if (issued !== "") forbid("certificate", "updates may not modify existing certificate content");
  return errors;
}

type Condition = NonNullable<NonNullable<Csr["status"]>["conditions"]>[number];

function conditionsOf(csr: Csr, type: string): Condition[] {
  return (csr.status?.conditions ?? []).filter((condition) => condition.type === type);
}

function checkConditions(next: Csr, current: Csr | undefined): FieldError[] {
  const stored = (current?.status?.conditions ?? []).map((condition) => condition.type ?? "");
  const hasBothDecisions = decisions.every((decision) => stored.includes(decision));
  const seen = new Set<string>();
  return each(next.status?.conditions, "status.conditions", ({ type = "", status }, at) => {
    const errors = type === "" && !stored.includes("") ? [required(child(at, "type"))] : [];
    const values = lasting.includes(type) ? ["True"] : ["False", "True", "Unknown"];
    errors.push(...requiredOneOf(status, values, child(at, "status")));
    const other = decisions.includes(type) ? decisions.find((decision) => decision !== type) : undefined;
    if (other !== undefined && seen.has(other) && !hasBothDecisions)
      errors.push(invalidValue(child(at, "type"), type, "Approved and Denied conditions are mutually exclusive"));
    if (seen.has(type) && isUnique(stored)) errors.push(duplicate(child(at, "type"), type));
    seen.add(type);
    return errors;
  });
}

const maxDomainLength = 253;
/** `<domain>/<label>.<subdomain>` */
const maxSignerNameLength = maxDomainLength + 1 + 63 + 1 + 253;

/**
 * `example.com/signer-name`: a domain of at least two labels, a slash, and labels separated by dots.
 * Source: pkg/apis/certificates/validation/validation.go
 */
function checkSignerName(name: string, path: string): FieldError[] {
  if (name === "") return [required(path, "signerName must be provided")];
  const [domain = "", rest, ...more] = name.split("/");
  if (rest === undefined || more.length > 0) {
    return [invalidValue(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")];
  }
  const errors: FieldError[] = [];
  if (Buffer.byteLength(domain) > maxDomainLength) errors.push(tooLong(path, domain, maxDomainLength));
  errors.push(...firstWrongPart(domain, path, dns1123LabelProblems));
  if (!domain.includes("."))
    errors.push(invalidValue(path, domain, "should be a domain with at least two segments separated by dots"));
  errors.push(...firstWrongPart(rest, path, dns1123SubdomainProblems));
  if (Buffer.byteLength(name) > maxSignerNameLength) errors.push(tooLong(path, name, maxSignerNameLength));
  return errors;
}

function firstWrongPart(text: string, path: string, check: (part: string) => string[]): FieldError[] {
  for (const part of text.split(".")) {
    const faults = check(part);
    if (faults.length > 0) return faults.map((fault) => invalidValue(path, text, `validating label ${goQuote(part)}: ${fault}`));
  }
  return [];
}
