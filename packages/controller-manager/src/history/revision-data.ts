import { hash } from "node:crypto";
import { coerce, encodeJsonText } from "@coxswain/apimachinery/objects/codec/json";
import { encodeAny } from "@coxswain/apimachinery/objects/codec/json-encode";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { ControllerRevision } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { PodTemplate, PodTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { podTemplates } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";

/** A strategic merge patch, which kubectl sends unchanged to roll back. */
interface RevisionData {
  readonly spec: { readonly template: PodTemplateSpec & { readonly $patch: "replace" } };
}

/**
 * Data of a ControllerRevision: a patch that replaces the owner's pod template.
 * Upstream compares and hashes its bytes. The data is therefore encoded as Go encodes a template, including empty
 * structs and null times, with sorted keys, regardless of how the template was received.
 * Source: pkg/controller/daemon/update.go, pkg/controller/statefulset/stateful_set_utils.go getPatch
 */
export function revisionData(template: PodTemplateSpec): RevisionData {
  const written = reread<Required<PodTemplate>>(encodeJsonText({ metadata: {}, template }, podTemplates));
  const data: RevisionData = { spec: { template: { ...written.template, $patch: "replace" } } };
  return reread(dataText(data));
}

/** A value of type T in the form in which its text writes it. */
const reread = <T>(text: string): T => JSON.parse(text) as T; // cast: the caller has just encoded a T

/** The serialized data of a revision, in Go's encoding. */
export function dataText(data: unknown): string {
  return encodeAny(data);
}

/** Pod template of a revision; undefined for data in another form. */
export function templateOf({ data }: Pick<ControllerRevision, "data">): PodTemplateSpec | undefined {
  if (!isRevisionData(data)) return undefined;
  const { $patch: _, ...own } = data.spec.template;
  return own;
}

/** Users may write a template with other fields: it is refused with the pods that are made from it. */
const isRevisionData = (data: unknown): data is RevisionData =>
  isJsonObject(data) && isJsonObject(data["spec"]) && isJsonObject(data["spec"]["template"]);

/** Whether two revisions have equal templates, independent of their encoding. Other data is compared as text. */
export const sameData = (a: unknown, b: unknown): boolean => digestOf(a) === digestOf(b);

/** The revisions with the same data, in their order. In each step one is read, unless it was read before. */
export function* withData(revisions: readonly ControllerRevision[], data: unknown): Steps<ControllerRevision[]> {
  const found: ControllerRevision[] = [];
  for (const revision of revisions) {
    yield;
    if (sameData(revision.data, data)) found.push(revision);
  }
  return found;
}

/** Digests of the canonical text of data, by its object: revisions in a cache do not change, and each sync compares all of them. */
const digests = new WeakMap<object, string>();

function digestOf(data: unknown): string {
  const made = (): string => hash("sha256", canonicalText(data));
  return typeof data === "object" && data !== null ? digests.getOrInsertComputed(data, made) : made();
}

function canonicalText(data: unknown): string {
  const template = templateOf({ data });
  const type = scheme.kind(podTemplates);
  if (template === undefined || type === undefined) return dataText(data);
  try {
    const read = coerce(deepClone({ metadata: {}, template }), type) as Required<PodTemplate>; // cast: the form of `type`
    return dataText(revisionData(read.template));
  } catch {
    return dataText(data); // users may write revisions with arbitrary data
  }
}
