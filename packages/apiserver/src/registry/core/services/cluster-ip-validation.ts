import {
  duplicate,
  type FieldError,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { goStrings } from "@coxswain/apimachinery/objects/errors/go-syntax";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { ipProblems, isIpv4Text } from "../../field-checks.ts";
import { each, optionalOneOf, saying } from "../../rules.ts";
import { isHeadless, needsClusterIp } from "./fields.ts";

const [ipsPath, familiesPath, policyPath] = ["spec.clusterIPs", "spec.ipFamilies", "spec.ipFamilyPolicy"];
const policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];

/** Addresses and families that are checked. Two are valid, so more only add errors, of which a thousand are shown. */
const mostChecked = 1000;

/** Validates cluster IPs, IP families and the policy. Source: ValidateServiceClusterIPsRelatedFields */
export function validateClusterIps(service: Service): FieldError[] {
  if (!needsClusterIp(service)) return [];
  const { spec } = service;
  const { clusterIP = "" } = spec;
  const ips = (spec.clusterIPs ?? []).slice(0, mostChecked);
  const families: readonly string[] = (spec.ipFamilies ?? []).slice(0, mostChecked);
  const errors: FieldError[] = [];
  if (clusterIP !== "" && ips.length === 0) errors.push(required(ipsPath));
  else if (clusterIP !== "" && ips[0] !== clusterIP)
    errors.push(invalidValue(ipsPath, ips, "first value must match `clusterIP`"));
  else if (clusterIP === "" && ips.length > 0)
    errors.push(invalidValue(ipsPath, ips, "must be empty when `clusterIP` is not specified"));
  const seen = new Set<string>();
  errors.push(
    ...each(families, familiesPath, (family, at) => {
      const own = optionalOneOf(family, ["IPv4", "IPv6"], at);
      if (seen.has(family)) own.push(duplicate(at, family));
      seen.add(family);
      return own;
    }),
  );
  const policy: string | undefined = spec.ipFamilyPolicy;
  if (policy !== undefined && policy !== null && !policies.includes(policy))
    errors.push(notSupported(policyPath, policy, policies));
  const addresses = validateAddresses(ips);
  errors.push(...addresses);
  if (ips.length > 2) errors.push(invalidValue(ipsPath, ips, "may only hold up to 2 values"));
  // With an invalid address, further errors would be misleading.
  if (addresses.length > 0) return errors;
  if (ips.length > 1 && new Set(ips.map(isIpv4Text)).size < 2)
    errors.push(invalidValue(ipsPath, ips, "may specify no more than one IP for each IP family"));
  if (!isHeadless(service) && families.length > 0) {
    const firstAt = new Map(ips.map((ip, i) => [ip, i] as const).toReversed());
    const fits = each(ips, ipsPath, (ip, at) => {
      const i = firstAt.get(ip)!;
      const family = families[i];
      if (family === undefined || family === (isIpv4Text(ip) ? "IPv4" : "IPv6")) return [];
      return [invalidValue(at, ip, `expected an ${family} value as indicated by \`ipFamilies[${i}]\``)];
    });
    errors.push(...fits);
  }
  return errors;
}

function validateAddresses(ips: readonly string[]): FieldError[] {
  return each(ips, ipsPath, (ip, at) => {
    if (ip !== "None" || at !== `${ipsPath}[0]`) return saying(ipProblems(ip), ip, at);
    return ips.length > 1 ? [invalidValue(ipsPath, ips, "'None' must be the first and only value")] : [];
  });
}

const onceText = "may not change once set";

/**
 * The primary address and family are immutable; secondary ones may be added, and removed by changing to SingleStack.
 * Source: validateUpgradeDowngradeClusterIPs, validateUpgradeDowngradeIPFamilies
 */
export function validateClusterIpsUpdate(next: Service, current: Service): FieldError[] {
  if (!needsClusterIp(next) || !needsClusterIp(current)) return [];
  const bothHeadless = isHeadless(next) && isHeadless(current);
  const families = isHeadless(next) || isHeadless(current) ? [] : familiesUpdate(next, current);
  return [...(bothHeadless ? [] : addressesUpdate(next, current)), ...families];
}

function addressesUpdate(next: Service, current: Service): FieldError[] {
  const [ips, old] = [next.spec.clusterIPs ?? [], current.spec.clusterIPs ?? []];
  const shown = goStrings("string", next.spec.clusterIPs ?? undefined);
  const invalid = (path: string, text: string): FieldError => invalidValue(path, shown, text);
  if (old.length === ips.length)
    return each(old, ipsPath, (ip, at) => (ips[old.indexOf(ip)] === ip ? [] : [invalid(at, onceText)]));
  const first = `${ipsPath}[0]`;
  const moved = old.length > 0 && ips.length > 0 && ips[0] !== old[0] ? [invalid(first, onceText)] : [];
  if (old.length < ips.length) return moved;
  const unset = ips.length === 0 ? [invalid(first, "primary clusterIP can not be unset")] : [];
  return [...unset, ...moved, ...(ips.length === 1 ? singleStack(next, "secondary clusterIP") : [])];
}

function familiesUpdate(next: Service, current: Service): FieldError[] {
  const [families, old] = [next.spec.ipFamilies ?? [], current.spec.ipFamilies ?? []];
  const path = `${familiesPath}[0]`;
  const shown = goStrings("core.IPFamily", families);
  if (old.length === families.length)
    return old.flatMap((family, i) => (family === families[i] ? [] : [invalidValue(path, shown, onceText)]));
  const moved =
    old.length > 0 && families.length > 0 && families[0] !== old[0]
      ? [invalidValue(path, next.spec.clusterIPs ?? [], onceText)]
      : [];
  if (old.length < families.length) return moved;
  const unset = next.spec.clusterIPs?.length ? [] : [invalidValue(path, shown, "primary ipFamily can not be unset")];
  return [...unset, ...moved, ...(families.length === 1 ? singleStack(next, "secondary ipFamily") : [])];
}

function singleStack({ spec }: Service, what: string): FieldError[] {
  const policy = spec.ipFamilyPolicy;
  return policy === "SingleStack"
    ? []
    : [invalidValue(policyPath, policy ?? null, `must be set to 'SingleStack' when releasing the ${what}`)];
}
