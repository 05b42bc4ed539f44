import { encodeAny } from "@coxswain/apimachinery/codec/json-encode";
import type { ControllerRevision } from "@coxswain/apimachinery/schema/kinds/apps/v1";
import type { PodTemplateSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";

/** A strategic merge patch; kubectl sends it as it is to bring the revision back. */
export interface RevisionData {
  readonly spec: { readonly template: PodTemplateSpec & { readonly $patch: "replace" } };
}

/**
 * What a ControllerRevision keeps of its owner: the pod template, as the patch that puts it in place of the present one.
 * Its keys are sorted: upstream compares and hashes the bytes.
 * Source: pkg/controller/daemon/update.go, pkg/controller/statefulset/stateful_set_utils.go getPatch
 */
export function revisionData(template: PodTemplateSpec): RevisionData {
  return JSON.parse(dataText({ spec: { template: { ...template, $patch: "replace" } } })) as RevisionData;
}

/** The bytes of a revision's data, as Go would write them. */
export function dataText(data: unknown): string {
  return encodeAny(data);
}

/** @returns the revision's own pod template; undefined for data that is no such patch */
export function templateOf(revision: ControllerRevision): PodTemplateSpec | undefined {
  const { spec } = (revision.data ?? {}) as Partial<RevisionData>;
  if (spec?.template === undefined) return undefined;
  const { $patch: _, ...template } = spec.template;
  return template;
}

/** What one writer leaves out another one may have written as null (a template's creationTimestamp); nothing else is alike. */
export function sameData(a: unknown, b: unknown): boolean {
  return dataText(withoutNulls(a)) === dataText(withoutNulls(b));
}

function withoutNulls(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutNulls);
  const members = Object.entries(value).filter(([, member]) => member !== null && member !== undefined);
  return Object.fromEntries(members.map(([key, member]) => [key, withoutNulls(member)]));
}
