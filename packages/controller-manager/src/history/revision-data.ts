import { hash } from "node:crypto";
import { coerce } from "@coxswain/apimachinery/objects/codec/json";
import { encodeAny } from "@coxswain/apimachinery/objects/codec/json-encode";
import { encodeJsonTextInSteps } from "@coxswain/apimachinery/objects/codec/json-encode-steps";
import { deepCloneInSteps, isContainer } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { ControllerRevision } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { PodTemplate, PodTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { podTemplates } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";

/** A strategic merge patch, which kubectl sends unchanged to roll back. */
export interface RevisionData {
  readonly spec: { readonly template: PodTemplateSpec & { readonly $patch: "replace" } };
}

/**
 * Data of a ControllerRevision: a patch that replaces the owner's pod template.
 * Upstream compares and hashes its bytes. The data is therefore encoded as Go encodes a template, including empty
 * structs and null times, with sorted keys, regardless of how the template was received.
 * Source: pkg/controller/daemon/update.go, pkg/controller/statefulset/stateful_set_utils.go getPatch
 */
export function* makingRevisionData(template: PodTemplateSpec): Steps<RevisionData> {
  const text = yield* textOf(template);
  yield;
  const data = reread<RevisionData>(text);
  digests.set(data, hash("sha256", text));
  return data;
}

/** As `makingRevisionData`, at once. */
export const revisionData = (template: PodTemplateSpec): RevisionData => atOnce(makingRevisionData(template));

function* textOf(template: PodTemplateSpec): Steps<string> {
  const written = yield* encodeJsonTextInSteps({ metadata: {}, template }, podTemplates);
  yield;
  const read = reread<Required<PodTemplate>>(written);
  yield;
  const data: RevisionData = { spec: { template: { ...read.template, $patch: "replace" } } };
  return yield* encodeJsonTextInSteps(data);
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

/** The revisions with an equal template, independent of its encoding, in their order. Other data is compared as text. */
export function* withData(revisions: readonly ControllerRevision[], data: unknown): Steps<ControllerRevision[]> {
  const found: ControllerRevision[] = [];
  for (const revision of revisions) {
    yield;
    if ((yield* digestOf(revision.data)) === (yield* digestOf(data))) found.push(revision);
  }
  return found;
}

/** Digests of the canonical text of data, by its object: revisions in a cache do not change, and each sync compares all of them. */
const digests = new WeakMap<object, string>();

function* digestOf(data: unknown): Steps<string> {
  const known = isContainer(data) ? digests.get(data) : undefined;
  if (known !== undefined) return known;
  const digest = hash("sha256", yield* canonicalText(data));
  if (isContainer(data)) digests.set(data, digest);
  return digest;
}

function* canonicalText(data: unknown): Steps<string> {
  const template = templateOf({ data });
  const type = scheme.kind(podTemplates);
  if (template === undefined || type === undefined) return dataText(data);
  try {
    const copy = yield* deepCloneInSteps({ metadata: {}, template });
    yield;
    const read = coerce(copy, type) as Required<PodTemplate>; // cast: the form of `type`
    yield;
    return yield* textOf(read.template);
  } catch {
    return dataText(data); // users may write revisions with arbitrary data
  }
}
