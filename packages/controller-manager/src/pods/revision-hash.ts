import { fnv32a } from "@coxswain/apimachinery/objects/meta/fnv";
import { safeEncode } from "@coxswain/apimachinery/objects/meta/names";
import type { PodTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/**
 * Value of `pod-template-hash` and suffix of ReplicaSet names: FNV-1a of the template and the collision count, safe-encoded.
 * Independent of key order. The hashed text differs from upstream's. Source: pkg/controller/controller_utils.go ComputeHash
 */
export function computeHash(template: PodTemplateSpec, collisionCount: number | undefined): string {
  return safeEncode(
    String(fnv32a(Buffer.from(canonical(template) + (collisionCount === undefined ? "" : `/${collisionCount}`)))),
  );
}

/** JSON with sorted keys; absent, null and empty values are equivalent. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null)
    return typeof value === "bigint" ? String(value) : JSON.stringify(value ?? null);
  const members = value as Readonly<Record<string, unknown>>; // cast: an object that is no list
  let text = "";
  for (const key of Object.keys(members).sort()) {
    const member = members[key];
    if (!isEmpty(member)) text += `${text === "" ? "" : ","}${JSON.stringify(key)}:${canonical(member)}`;
  }
  return `{${text}}`;
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}
