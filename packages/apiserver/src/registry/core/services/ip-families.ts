import { isIPv4 } from "node:net";
import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { invalidValue } from "@coxswain/apimachinery/errors/field-error";
import { index } from "@coxswain/apimachinery/errors/field-path";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { Service } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { parseIp } from "../../field-checks.ts";
import { isHeadless } from "./fields.ts";

type Family = "IPv4" | "IPv6";

/**
 * Fills ipFamilies and ipFamilyPolicy from what the user wrote and what the cluster has.
 * @param available the cluster's families, the primary one first.
 * @returns what the cluster cannot give.
 * Source: pkg/registry/core/service/storage/alloc.go initIPFamilyFields
 */
export function defaultIpFamilies(next: Service, current: Service | undefined, available: readonly Family[]): FieldError[] {
  const { spec } = next;
  if (spec.type === "ExternalName") return [];
  const errors: FieldError[] = [];
  const primary = available[0] as Family;
  if (current) followPolicyChange(next, current);
  for (const [i, ip] of (spec.clusterIPs ?? []).entries()) {
    const plain = ip === "None" ? undefined : parseIp(ip);
    if (plain === undefined) continue;
    const family: Family = isIPv4(plain) ? "IPv4" : "IPv6";
    const families: string[] = spec.ipFamilies ?? [];
    if (families[i] === undefined && families.length === i) spec.ipFamilies = [...families, family];
  }
  for (const [i, family] of (spec.ipFamilies ?? []).entries()) {
    if (family !== "IPv4" && family !== "IPv6") continue; // an error of its own
    const selectorless = isHeadless(next) && Object.keys(spec.selector ?? {}).length === 0;
    if (!(available as readonly string[]).includes(family) && !selectorless) {
      errors.push(invalidValue(index("spec.ipFamilies", i), family, "not configured on this cluster"));
    }
  }
  if (errors.length > 0) return errors;
  const other = (family: string): Family => (family === "IPv4" ? "IPv6" : "IPv4");
  if (isHeadless(next) && Object.keys(spec.selector ?? {}).length === 0) {
    // Nobody but the user knows where its endpoints are: both families may come.
    spec.ipFamilyPolicy ??= spec.ipFamilies?.length === 1 && current ? "SingleStack" : "RequireDualStack";
    if (!spec.ipFamilies?.length) spec.ipFamilies = [primary];
    if (spec.ipFamilies.length === 1 && spec.ipFamilyPolicy !== "SingleStack")
      spec.ipFamilies = [...spec.ipFamilies, other(spec.ipFamilies[0] as string)];
    return errors;
  }
  const both = (spec.ipFamilies ?? []).length === 2 || (spec.clusterIPs ?? []).length === 2;
  spec.ipFamilyPolicy ??= both ? "RequireDualStack" : "SingleStack";
  if (spec.ipFamilyPolicy === "RequireDualStack" && available.length < 2) {
    errors.push(
      invalidValue("spec.ipFamilyPolicy", spec.ipFamilyPolicy, "this cluster is not configured for dual-stack services"),
    );
    return errors;
  }
  if (spec.ipFamilyPolicy === "SingleStack" && both) {
    errors.push(
      invalidValue(
        "spec.ipFamilyPolicy",
        spec.ipFamilyPolicy,
        "must be RequireDualStack or PreferDualStack when multiple `ipFamilies` are specified",
      ),
    );
    return errors;
  }
  if (!spec.ipFamilies?.length) spec.ipFamilies = [primary];
  if (spec.ipFamilyPolicy !== "SingleStack" && available.length === 2 && spec.ipFamilies.length === 1) {
    spec.ipFamilies = [...spec.ipFamilies, other(spec.ipFamilies[0] as string)];
  }
  return errors;
}

/** Down to one stack: the second family and address go, unless the client said otherwise. */
function followPolicyChange(next: Service, current: Service): void {
  const [spec, old] = [next.spec, current.spec];
  if (old.ipFamilyPolicy === "SingleStack" || spec.ipFamilyPolicy !== "SingleStack" || old.ipFamilyPolicy === undefined) return;
  if (semanticEqual(spec.ipFamilies, old.ipFamilies) && spec.ipFamilies) spec.ipFamilies = spec.ipFamilies.slice(0, 1);
  if (semanticEqual(spec.clusterIPs, old.clusterIPs) && spec.clusterIPs) spec.clusterIPs = spec.clusterIPs.slice(0, 1);
}
