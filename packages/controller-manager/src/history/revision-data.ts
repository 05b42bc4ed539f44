import { coerce, encodeJsonText } from "@coxswain/apimachinery/codec/json";
import { encodeAny } from "@coxswain/apimachinery/codec/json-encode";
import { deepClone } from "@coxswain/apimachinery/meta/deep-equal";
import type { ControllerRevision } from "@coxswain/apimachinery/schema/kinds/apps/v1";
import type { PodTemplateSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { podTemplates } from "@coxswain/apimachinery/schema/kinds/resources";
import { scheme } from "@coxswain/apimachinery/schema/scheme";

/** A strategic merge patch; kubectl sends it as it is to bring the revision back. */
export interface RevisionData {
  readonly spec: { readonly template: PodTemplateSpec & { readonly $patch: "replace" } };
}

/**
 * What a ControllerRevision keeps of its owner: the pod template, as the patch that puts it in place of the present one.
 * Upstream compares and hashes its bytes, so it has what Go writes of a template, empty structs and null times among it,
 * whether the template came in JSON or not; and its keys are sorted.
 * Source: pkg/controller/daemon/update.go, pkg/controller/statefulset/stateful_set_utils.go getPatch
 */
export function revisionData(template: PodTemplateSpec): RevisionData {
  const written = JSON.parse(encodeJsonText({ metadata: {}, template }, podTemplates)) as { template: PodTemplateSpec };
  return JSON.parse(dataText({ spec: { template: { ...written.template, $patch: "replace" } } })) as RevisionData;
}

/** The bytes of a revision's data, as Go would write them. */
export function dataText(data: unknown): string {
  return encodeAny(data);
}

/** @returns the revision's own pod template; undefined for data that is no such patch */
export function templateOf({ data }: Pick<ControllerRevision, "data">): PodTemplateSpec | undefined {
  const { template } = (data as Partial<RevisionData> | undefined)?.spec ?? {};
  if (typeof template !== "object" || template === null) return undefined;
  const { $patch: _, ...own } = template;
  return own;
}

/** Whether two revisions are of one template, however each was written. Data that is no template is only like itself. */
export function sameData(a: unknown, b: unknown): boolean {
  return canonicalText(a) === canonicalText(b);
}

function canonicalText(data: unknown): string {
  const template = templateOf({ data });
  const type = scheme.kind(podTemplates);
  if (template === undefined || type === undefined) return dataText(data);
  try {
    const read = coerce(deepClone({ metadata: {}, template }), type) as unknown as { template: PodTemplateSpec };
    return dataText(revisionData(read.template));
  } catch {
    return dataText(data); // anybody may write a revision, and anything into it
  }
}
