import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { invalidValue, required } from "@coxswain/apimachinery/errors/field-error";
import { child } from "@coxswain/apimachinery/errors/field-path";
import type {
  ServerStorageVersion,
  StorageVersionCondition,
  StorageVersionStatus,
} from "@coxswain/apimachinery/schema/kinds/internal/v1alpha1";
import { dns1123Subdomain, isDns1035Label, isDns1123Subdomain } from "../../field-checks.ts";
import { each, saying } from "../../rules.ts";

/** `apps.deployments`. Source: pkg/apis/apiserverinternal/validation ValidateStorageVersionName */
export function storageVersionNameFaults(name: string): string[] {
  const dot = name.lastIndexOf(".");
  if (dot < 0) return ["name must be in the form of <group>.<resource>"];
  return [
    ...isDns1123Subdomain(name.slice(0, dot)).map((fault) => `the group segment ${fault}`),
    ...isDns1035Label(name.slice(dot + 1)).map((fault) => `the resource segment ${fault}`),
  ];
}

/** Source: pkg/apis/apiserverinternal/validation validateStorageVersionStatus */
export function validateStorageVersionStatus(status: StorageVersionStatus | undefined, path: string): FieldError[] {
  const versions = status?.storageVersions ?? [];
  const ids = new Set<string>();
  const servers = each(versions, child(path, "storageVersions"), (version, at) => {
    const errors = validateServerVersion(version, at);
    const { apiServerID: id = "" } = version;
    if (ids.has(id)) errors.push({ type: "FieldValueDuplicate", field: child(at, "apiServerID"), badValue: id, detail: "" });
    ids.add(id);
    return errors;
  });
  return [
    ...servers,
    ...validateCommon(versions, status?.commonEncodingVersion, child(path, "commonEncodingVersion")),
    ...each(status?.conditions, child(path, "conditions"), validateCondition),
  ];
}

function validateServerVersion(version: ServerStorageVersion, path: string): FieldError[] {
  const { apiServerID: id = "", encodingVersion: encoding = "", decodableVersions: decodable = [] } = version;
  const errors = [
    ...dns1123Subdomain(id, child(path, "apiServerID")),
    ...saying(apiVersionFaults(encoding), encoding, child(path, "encodingVersion")),
    ...each(decodable, child(path, "decodableVersions"), (one, at) => saying(apiVersionFaults(one), one, at)),
  ];
  if (!decodable.includes(encoding)) {
    const text = `decodableVersions must include encodingVersion ${encoding}`;
    errors.push(invalidValue(child(path, "decodableVersions"), decodable, text));
  }
  return errors;
}

/** `v1`, `apps/v1`. */
function apiVersionFaults(apiVersion: string): string[] {
  const parts = apiVersion.split("/");
  if (parts.length > 2) return ["an apiVersion is <version> or <group>/<version>"];
  const group = parts.length === 2 ? (parts[0] as string) : undefined;
  const version = parts.at(-1) as string;
  const named = (part: string, faults: readonly string[]): string[] => faults.map((fault) => `${part} part: ${fault}`);
  if (version === "") return ["version part: must be non-empty"];
  if (group === "") return ["group part: must be non-empty"];
  return [
    ...(group === undefined ? [] : named("group", isDns1123Subdomain(group))),
    ...named("version", isDns1035Label(version)),
  ];
}

/** There is a common version when all servers say the same, and only then. */
function validateCommon(versions: readonly ServerStorageVersion[], common: string | undefined, path: string): FieldError[] {
  const encodings = new Set(versions.map(({ encodingVersion }) => encodingVersion));
  const [agreed] = encodings.size === 1 ? encodings : [];
  if (common === agreed) return [];
  if (agreed === undefined) {
    const text =
      "should be nil if servers do not agree on the same encoding version, or if there is no server reporting the supported versions yet";
    return [invalidValue(path, common, text)];
  }
  if (common === undefined) return [invalidValue(path, null, `the common encoding version is ${agreed}`)];
  return [invalidValue(path, common, `the actual common encoding version is ${agreed}`)];
}

function validateCondition(condition: StorageVersionCondition, path: string): FieldError[] {
  return (["type", "status", "reason"] as const)
    .filter((field) => !condition[field])
    .map((field) => required(child(path, field)));
}
