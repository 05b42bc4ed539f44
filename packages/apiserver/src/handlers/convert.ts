/**
 * Conversions from the hub version, in which stores and entries hold objects, to the request's (`decode.ts` has the others). Results
 * are memoized with the entry, so that readers of the same version share one conversion and one buffer.
 */
import { encodeJson } from "@coxswain/apimachinery/objects/codec/json";
import { ownMemory } from "@coxswain/apimachinery/objects/codec/json-encode";
import { encodeJsonTextInSteps } from "@coxswain/apimachinery/objects/codec/json-encode-steps";
import { encodeProtobuf, encodeProtobufInSteps, insertResourceVersion } from "@coxswain/apimachinery/objects/codec/protobuf";
import { deepCloneInSteps } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { formatGroupVersion, setKind } from "@coxswain/apimachinery/objects/meta/group-version";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Entry } from "../storage/storage.ts";
import type { ServedResource } from "./served-resources.ts";

/** @returns a new object in the request's version, owned by the caller */
export function fromHub(served: ServedResource, hub: KubeObject): KubeObject {
  return atOnce(fromHubInSteps(served, hub));
}

/** As `fromHub`, for an object of many values. */
export function* fromHubInSteps(served: ServedResource, hub: KubeObject): Steps<KubeObject> {
  const { fromHubInSteps } = served.version;
  const copy = yield* cloneObject(hub);
  return setKind(fromHubInSteps === undefined ? copy : yield* fromHubInSteps(copy), served.kind);
}

/** A deep copy that shares the FieldsV1 values, which are immutable and may be as large as the rest of the object. */
function* cloneObject(object: KubeObject): Steps<KubeObject> {
  const entries = object.metadata?.managedFields;
  if (!Array.isArray(entries)) return yield* deepCloneInSteps(object); // none, or invalid data in a custom resource
  const copy = yield* deepCloneInSteps<KubeObject>({ ...object, metadata: { ...object.metadata, managedFields: [] } });
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

/** Makes what `objectOf` and `jsonOf` return, in steps for large objects. */
export function* jsonInSteps(entry: Entry, served: ServedResource): Steps<void> {
  if (served.isHub || entry.hasMemo(`json:${slotOf(served)}`)) return;
  const object = yield* fromHubInSteps(served, entry.object());
  const json = Buffer.from(yield* encodeJsonTextInSteps(object, served.kind));
  entry.memo(`object:${slotOf(served)}`, () => object);
  entry.memo(`json:${slotOf(served)}`, () => ownMemory(json));
}

/** The entry as protobuf with its envelope. Shared. */
export function protobufOf(entry: Entry, served: ServedResource): Buffer {
  return entry.memo(`protobuf:${slotOf(served)}`, () =>
    ownMemory(protobufOfWritten(entry, served) ?? encodeProtobuf(objectOf(entry, served), served.kind)),
  );
}

/** @returns undefined when this server has not written the entry, or in another version */
function protobufOfWritten({ encoded, revision }: Entry, { kind }: ServedResource): Buffer | undefined {
  return encoded && insertResourceVersion(encoded, kind, String(revision));
}

/** Makes what `protobufOf` returns, in steps for large objects. */
export function* protobufInSteps(entry: Entry, served: ServedResource): Steps<void> {
  const slot = `protobuf:${slotOf(served)}`;
  if (entry.hasMemo(slot)) return;
  let bytes = protobufOfWritten(entry, served);
  if (bytes === undefined) {
    const object = served.isHub ? entry.object() : yield* fromHubInSteps(served, entry.object());
    yield;
    bytes = yield* encodeProtobufInSteps(object, served.kind);
  }
  const made = ownMemory(bytes);
  entry.memo(slot, () => made);
}

/**
 * The leading kind and apiVersion of each encoded object, which built-in list items omit; empty for
 * custom resources, which keep them.
 */
export function itemPrefix(served: ServedResource): Buffer {
  if (served.definition.itemsKeepKind === true) return Buffer.alloc(0);
  return Buffer.from(
    `{"kind":${JSON.stringify(served.kind.kind)},"apiVersion":${JSON.stringify(formatGroupVersion(served.kind))},`,
  );
}

/** Identifies the version in memo slots, since several versions of an entry may be in use. */
export function slotOf(served: ServedResource): string {
  return formatGroupVersion(served.kind);
}
