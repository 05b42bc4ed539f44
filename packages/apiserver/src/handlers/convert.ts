/**
 * Between the version a client speaks and the hub version that stores and entries hold. What is derived from an entry
 * is kept with it, so that a hundred readers of one version share one conversion and one buffer.
 */
import { encodeJson } from "@coxswain/apimachinery/codec/json";
import { ownMemory } from "@coxswain/apimachinery/codec/own-memory";
import { encodeProtobuf } from "@coxswain/apimachinery/codec/protobuf";
import { deepClone } from "@coxswain/apimachinery/meta/deep-equal";
import { formatGroupVersion, type GroupVersionKind } from "@coxswain/apimachinery/meta/group-version";
import { isJsonObject } from "@coxswain/apimachinery/meta/json-value";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { Entry } from "../storage/storage.ts";
import type { ServedResource } from "./served-resources.ts";

/** Fills the version's defaults, then brings the object to the hub version. Takes over its argument. */
export function toHub(served: ServedResource, object: KubeObject): KubeObject {
  served.version.defaults?.(object);
  return toHubAsIs(served, object);
}

/** Without defaults: an object that has them, or one that is only compared. */
export function toHubAsIs(served: ServedResource, object: KubeObject): KubeObject {
  const hub = served.version.toHub?.(object) ?? object;
  return withKind(hub, served.hubKind);
}

/** @returns a fresh object in the request's version, which the caller owns. */
export function fromHub(served: ServedResource, hub: KubeObject): KubeObject {
  const copy = cloneObject(hub);
  return withKind(served.version.fromHub?.(copy) ?? copy, served.kind);
}

/** A copy of an object that shares only its FieldsV1, which nobody changes: they may be as large as all the rest. */
function cloneObject(object: KubeObject): KubeObject {
  const entries = object.metadata?.managedFields;
  if (!Array.isArray(entries)) return deepClone(object); // none, or nonsense in a custom resource
  const copy = deepClone<KubeObject>({ ...object, metadata: { ...object.metadata, managedFields: [] } });
  copy.metadata.managedFields = entries.map((entry) => (isJsonObject(entry) ? { ...entry } : entry));
  return copy;
}

/** The entry in the request's version. Shared: read only. */
export function objectOf(entry: Entry, served: ServedResource): KubeObject {
  if (served.isHub) return entry.object();
  return entry.memo(`object:${slotOf(served)}`, () => fromHub(served, entry.object()));
}

/** The entry as JSON in the request's version, without a newline. Shared. */
export function jsonOf(entry: Entry, served: ServedResource): Buffer {
  if (served.isHub) return entry.json();
  return entry.memo(`json:${slotOf(served)}`, () => ownMemory(encodeJson(fromHub(served, entry.object()), served.kind)));
}

/** The same with the newline that ends an answer: what a GET sends. */
export function jsonLineOf(entry: Entry, served: ServedResource): Buffer {
  const line = served.isHub ? entry.jsonLine?.() : undefined;
  return line ?? Buffer.concat([jsonOf(entry, served), newline]);
}

const newline = Buffer.from("\n");

/** The entry as protobuf with its envelope. Shared. */
export function protobufOf(entry: Entry, served: ServedResource): Buffer {
  return entry.memo(`protobuf:${slotOf(served)}`, () => ownMemory(encodeProtobuf(objectOf(entry, served), served.kind)));
}

/** The bytes that begin every encoded object of this version and that its list leaves out; empty when it keeps them. */
export function itemPrefix(served: ServedResource): Buffer {
  if (served.definition.itemsKeepKind === true) return Buffer.alloc(0);
  return Buffer.from(
    `{"kind":${JSON.stringify(served.kind.kind)},"apiVersion":${JSON.stringify(formatGroupVersion(served.kind))},`,
  );
}

/** Names the version in memo slots: two versions of one resource may be asked for at the same time. */
export function slotOf(served: ServedResource): string {
  return formatGroupVersion(served.kind);
}

function withKind(object: KubeObject, kind: GroupVersionKind): KubeObject {
  object.kind = kind.kind;
  object.apiVersion = formatGroupVersion(kind);
  return object;
}
