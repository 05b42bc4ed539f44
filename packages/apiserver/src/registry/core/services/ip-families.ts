import { isIPv4 } from "node:net";
import { type FieldError, index, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { parseIp } from "@coxswain/apimachinery/objects/meta/ip";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { validateClusterIps } from "./cluster-ip-validation.ts";
import { isHeadless } from "./fields.ts";

type Family = "IPv4" | "IPv6";

/**
 * Sets ipFamilies and ipFamilyPolicy from the request, the stored service and the cluster's families. A service changes between
 * single and dual stack only when its policy, families or addresses request it, never because the cluster changed.
 * @param available families of the cluster, the primary one first
 * @returns errors for contradictions and for families that the cluster does not have
 * Source: pkg/registry/core/service/storage/alloc.go initIPFamilyFields
 */
export function defaultIpFamilies(next: Service, current: Service | undefined, available: readonly Family[]): FieldError[] {
  const { spec } = next;
  if (spec.type === "ExternalName" || (current !== undefined && staysPreferDualStack(next, current))) return [];
  const anywhere = isHeadless(next) && Object.keys(spec.selector ?? {}).length === 0;
  spec.ipFamilyPolicy ??= current?.spec.ipFamilyPolicy ?? (anywhere ? "RequireDualStack" : "SingleStack");
  const invalid = validateClusterIps(next);
  if (invalid.length > 0) return invalid;
  const errors = [
    ...(current === undefined ? [] : releaseSecond(next, current)),
    ...tooManyForOneStack(next),
    ...inferFamilies(next, available),
  ];
  if (errors.length > 0) return errors;
  // Endpoints of a headless service without selector are managed by the user and may be of any family.
  if (!anywhere) {
    const missing = notOfCluster(next, available);
    if (missing.length > 0) return missing;
  }
  if (!spec.ipFamilies?.length) spec.ipFamilies = [available[0]!];
  if (spec.ipFamilyPolicy !== "SingleStack" && spec.ipFamilies.length === 1 && (anywhere || available.length === 2)) {
    spec.ipFamilies = [...spec.ipFamilies, spec.ipFamilies[0] === "IPv4" ? "IPv6" : "IPv4"];
  }
  return [];
}

function staysPreferDualStack({ spec }: Service, { spec: old }: Service): boolean {
  const preferred = spec.ipFamilyPolicy === "PreferDualStack" && old.ipFamilyPolicy === "PreferDualStack";
  return preferred && spec.type === old.type && same(spec.clusterIPs, old.clusterIPs) && same(spec.ipFamilies, old.ipFamilies);
}

/** Changing the policy to SingleStack drops the unchanged secondary family and address; without it they must not be removed. */
function releaseSecond({ spec }: Service, { spec: old }: Service): FieldError[] {
  if (spec.ipFamilyPolicy === "SingleStack") {
    if (same(spec.clusterIPs, old.clusterIPs) && spec.clusterIPs) spec.clusterIPs = spec.clusterIPs.slice(0, 1);
    if (same(spec.ipFamilies, old.ipFamilies) && spec.ipFamilies) spec.ipFamilies = spec.ipFamilies.slice(0, 1);
    return [];
  }
  return [
    ...(isReduced(spec.clusterIPs, old.clusterIPs) ? [badPolicy(spec, "'SingleStack' to release the secondary cluster IP")] : []),
    ...(isReduced(spec.ipFamilies, old.ipFamilies) ? [badPolicy(spec, "'SingleStack' to release the secondary IP family")] : []),
  ];
}

function tooManyForOneStack({ spec }: Service): FieldError[] {
  if (spec.ipFamilyPolicy !== "SingleStack") return [];
  return [
    { values: spec.clusterIPs, what: "cluster IPs" },
    { values: spec.ipFamilies, what: "IP families" },
  ]
    .filter(({ values }) => values?.length === 2)
    .map(({ what }) => badPolicy(spec, `'RequireDualStack' or 'PreferDualStack' when multiple ${what} are specified`));
}

function badPolicy(spec: Service["spec"], wanted: string): FieldError {
  return invalidValue("spec.ipFamilyPolicy", spec.ipFamilyPolicy ?? "", `must be ${wanted}`);
}

/** Infers missing ipFamilies from the addresses. */
function inferFamilies({ spec }: Service, available: readonly Family[]): FieldError[] {
  const errors: FieldError[] = [];
  if (isHeadless({ spec })) return errors;
  for (const [i, ip] of (spec.clusterIPs ?? []).entries()) {
    if (i < (spec.ipFamilies?.length ?? 0)) continue;
    const family: Family = isIPv4(parseIp(ip) ?? "") ? "IPv4" : "IPv6";
    if (available.includes(family)) spec.ipFamilies = [...(spec.ipFamilies ?? []), family];
    else {
      const path = index("spec.clusterIPs", i);
      errors.push(invalidValue(path, spec.clusterIPs ?? [], `${family} is not configured on this cluster`));
    }
  }
  return errors;
}

function notOfCluster({ spec }: Service, available: readonly string[]): FieldError[] {
  const errors: FieldError[] = [];
  if (spec.ipFamilyPolicy === "RequireDualStack" && available.length < 2) {
    const detail = "this cluster is not configured for dual-stack services";
    errors.push(invalidValue("spec.ipFamilyPolicy", spec.ipFamilyPolicy, detail));
  }
  for (const [i, family] of (spec.ipFamilies ?? []).entries()) {
    if (available.includes(family)) continue;
    errors.push(invalidValue(index("spec.ipFamilies", i), family, "not configured on this cluster"));
  }
  return errors;
}

function same(next: readonly string[] | undefined, current: readonly string[] | undefined): boolean {
  const old = current ?? [];
  return (next ?? []).length === old.length && old.every((value, i) => value === next?.[i]);
}

function isReduced(next: readonly string[] | undefined, current: readonly string[] | undefined): boolean {
  return next !== undefined && next.length > 0 && next.length < (current ?? []).length;
}
