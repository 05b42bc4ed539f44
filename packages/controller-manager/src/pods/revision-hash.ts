import type { PodTemplateSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";

/**
 * The value of `pod-template-hash`, and the suffix of a ReplicaSet's name: FNV-1a of the template and of the number of
 * collisions before, in the alphabet that spells no words. Equal templates give equal hashes however their keys are
 * ordered. Source: pkg/controller/controller_utils.go ComputeHash; the text that is hashed is our own.
 */
export function computeHash(template: PodTemplateSpec, collisionCount: number | undefined): string {
  return safeEncode(String(fnv32a(canonical(template) + (collisionCount === undefined ? "" : `/${collisionCount}`))));
}

/** Source: k8s.io/apimachinery pkg/util/rand SafeEncodeString */
export function safeEncode(text: string): string {
  let encoded = "";
  for (let i = 0; i < text.length; i++) encoded += alphanums[text.charCodeAt(i) % alphanums.length];
  return encoded;
}

const alphanums = "bcdfghjklmnpqrstvwxz2456789";

/** FNV-1a over the UTF-8 bytes, 32 bits. */
export function fnv32a(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text, "utf8")) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/** FNV-1, the older order of its two steps: what names ControllerRevisions. */
export function fnv32(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text, "utf8")) hash = Math.imul(hash, 0x01000193) ^ byte;
  return hash >>> 0;
}

/** JSON with sorted keys; what is absent, null or empty says the same. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null)
    return typeof value === "bigint" ? String(value) : JSON.stringify(value ?? null);
  const members = Object.entries(value)
    .filter(([, member]) => !isEmpty(member))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(",")}}`;
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}
