import { child, type FieldError, index, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import type {
  ServerStorageVersion,
  StorageVersionCondition,
  StorageVersionStatus,
} from "@coxswain/apimachinery/objects/schema/kinds/internal/v1alpha1";
import {
  dns1035LabelProblems,
  dns1123Subdomain,
  dns1123SubdomainProblems,
  qualifiedName,
  qualifiedNameProblems,
} from "../../field-checks.ts";
import { each, saying } from "../../rules.ts";

/** `apps.deployments`. Source: pkg/apis/apiserverinternal/validation ValidateStorageVersionName */
export function storageVersionNameFaults(name: string): string[] {
  const dot = name.lastIndexOf(".");
  if (dot < 0) return ["name must be in the form of <group>.<resource>"];
  return [
    ...dns1123SubdomainProblems(name.slice(0, dot)).map((fault) => `the group segment ${fault}`),
    ...dns1035LabelProblems(name.slice(dot + 1)).map((fault) => `the resource segment ${fault}`),
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
    ...validateConditions(status?.conditions ?? [], path),
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

const tooManyParts =
  "an apiVersion is a DNS-1035 label, which must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyVersion')";

/** Error texts for an invalid apiVersion (`v1`, `apps/v1`). */
function apiVersionFaults(apiVersion: string): string[] {
  const parts = apiVersion.split("/");
  if (parts.length > 2) return [tooManyParts];
  const named = (part: string, value: string, check: (value: string) => string[]): string[] =>
    (value === "" ? ["must be non-empty"] : check(value)).map((fault) => `${part} part: ${fault}`);
  const group = parts.length === 2 ? named("group", parts[0]!, dns1123SubdomainProblems) : [];
  const faults = [...group, ...named("version", parts.at(-1)!, dns1035LabelProblems)];
  return faults.length === 0 ? [] : [faults.join(",")];
}

/** commonEncodingVersion must be set if and only if all servers have the same encoding version. */
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

/** Error paths lack the field name of the list, like upstream's. */
function validateConditions(conditions: readonly StorageVersionCondition[], path: string): FieldError[] {
  const before = new Map<string, number>();
  return conditions.flatMap(({ type = "", status, reason, message }, own) => {
    const at = index(path, own);
    const i = before.get(type);
    before.set(type, own);
    const text = `the type of the condition is not unique, it also appears in conditions[${i}]`;
    return [
      ...(i === undefined ? [] : [invalidValue(child(at, "type"), type, text)]),
      ...qualifiedName(type, child(at, "type")),
      // Upstream reports the type as the bad value of the status, too.
      ...saying(qualifiedNameProblems(status ?? ""), type, child(at, "status")),
      ...(reason ? [] : [required(child(at, "reason"), "reason cannot be empty")]),
      ...(message ? [] : [required(child(at, "message"), "message cannot be empty")]),
    ];
  });
}
