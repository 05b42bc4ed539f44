import { encodeJson, encodeJsonText, parseJson, parseLargeJson } from "@coxswain/apimachinery/objects/codec/json";
import { encodeJsonTextInSteps } from "@coxswain/apimachinery/objects/codec/json-encode-steps";
import {
  decodeProtobuf,
  decodeProtobufInSteps,
  encodeProtobuf,
  encodeProtobufInSteps,
  hasProtobufForm,
} from "@coxswain/apimachinery/objects/codec/protobuf";
import {
  decodeProtobufReusing,
  decodeProtobufReusingInSteps,
  type EncodedObject,
} from "@coxswain/apimachinery/objects/codec/protobuf-reuse";
import { deepCloneInSteps } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { formatGroupVersion, type GroupResource, type GroupVersionKind } from "@coxswain/apimachinery/objects/meta/group-version";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { KubeObject, Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { EntryCodec, EntryMemory } from "./entry.ts";

interface StoredVersion {
  readonly version: string;
  readonly defaults?: (object: KubeObject) => void;
  readonly defaultsInSteps?: (object: KubeObject) => Steps<void>;
  readonly toHub?: (object: KubeObject) => KubeObject;
  readonly fromHub?: (object: KubeObject) => KubeObject;
  readonly toHubInSteps?: (object: KubeObject) => Steps<KubeObject>;
  readonly fromHubInSteps?: (object: KubeObject) => Steps<KubeObject>;
}

/** What a store needs to know of a resource; every `ResourceDefinition` satisfies it. */
export interface StoredResource extends GroupResource {
  readonly kind: string;
  readonly namespaced: boolean;
  readonly hub: string;
  readonly hubGroup?: string;
  readonly storage?: { readonly group: string; readonly version: string };
  readonly storageFolder?: string;
  readonly versions: readonly StoredVersion[];
  readonly formerVersions?: readonly (StoredVersion & { readonly group?: string })[];
  readonly selectableFields?: (object: KubeObject) => Record<string, string>;
  readonly cacheIndexes?: readonly string[];
  /** Objects are stored and returned in the version they were written in; the caller converts them (custom resources). */
  readonly keepsVersions?: boolean;
}

/** Converts objects of one resource to the stored bytes and back, and to the hub version's JSON, which caches hold. */
export interface ObjectCodec extends EntryCodec {
  readonly resource: StoredResource;
  /** Encodes the object in the storage version, without resourceVersion and selfLink. */
  toStored(object: KubeObject): Buffer;
  /** As `toStored`, in steps for many values. */
  toStoredInSteps(object: KubeObject): Steps<Buffer>;
  /**
   * Decodes JSON or protobuf to the hub version, with defaults and without resourceVersion.
   * @param before an earlier state of the same object and the bytes that `toStored` made of it; equal parts may be shared with it
   */
  fromStored(bytes: Buffer, before?: EncodedObject): KubeObject;
  /** As `fromStored`, in steps for large objects. */
  fromStoredInSteps(bytes: Buffer, before?: EncodedObject): Steps<KubeObject>;
}

const protobufMagic = Buffer.from("k8s\0");

/** Conversion between the hub version and the stored one. */
class StoredForm {
  readonly hub: GroupVersionKind;
  readonly stored: GroupVersionKind;
  readonly #resource: StoredResource;
  readonly #hubApiVersion: string;
  readonly #byApiVersion = new Map<string, StoredVersion>();
  /** undefined: the hub version is stored. */
  readonly converted: StoredVersion | undefined;

  constructor(resource: StoredResource) {
    this.#resource = resource;
    this.hub = { group: resource.hubGroup ?? resource.group, version: resource.hub, kind: resource.kind };
    this.stored = resource.storage === undefined ? this.hub : { ...resource.storage, kind: resource.kind };
    this.#hubApiVersion = formatGroupVersion(this.hub);
    const known: readonly (StoredVersion & { readonly group?: string })[] = [
      ...(resource.formerVersions ?? []),
      ...resource.versions,
    ];
    for (const { group = resource.group, ...version } of known) {
      this.#byApiVersion.set(formatGroupVersion({ group, version: version.version }), version);
    }
    const storedApiVersion = formatGroupVersion(this.stored);
    const isHub = storedApiVersion === this.#hubApiVersion;
    const version = this.#byApiVersion.get(storedApiVersion);
    this.converted = isHub || version?.fromHub === undefined ? undefined : version;
  }

  /** The object in the storage version, without the fields that are not stored. */
  *of(object: KubeObject): Steps<KubeObject> {
    const { resourceVersion: _, selfLink: __, ...metadata } = object.metadata;
    if (this.#resource.keepsVersions) return { ...object, metadata };
    let value: KubeObject = { ...object, apiVersion: this.#hubApiVersion, kind: this.#resource.kind, metadata };
    if (this.converted !== undefined) {
      const { fromHub, fromHubInSteps } = this.converted;
      const copy = yield* deepCloneInSteps(value);
      value = fromHubInSteps === undefined ? (fromHub?.(copy) ?? copy) : yield* fromHubInSteps(copy);
    }
    value.apiVersion = formatGroupVersion(this.stored);
    return value;
  }

  toHub(object: KubeObject): KubeObject {
    const version = this.#versionOf(object);
    version?.defaults?.(object);
    return atOnce(this.#converted(object, version));
  }

  *toHubInSteps(object: KubeObject): Steps<KubeObject> {
    const version = this.#versionOf(object);
    if (version?.defaultsInSteps === undefined) version?.defaults?.(object);
    else yield* version.defaultsInSteps(object);
    yield;
    return yield* this.#converted(object, version);
  }

  #versionOf(object: KubeObject): StoredVersion | undefined {
    return this.#byApiVersion.get(object.apiVersion ?? this.#hubApiVersion);
  }

  *#converted(object: KubeObject, version: StoredVersion | undefined): Steps<KubeObject> {
    let result = object;
    if (version?.toHubInSteps !== undefined) result = yield* version.toHubInSteps(object);
    else if (version?.toHub !== undefined) result = version.toHub(object);
    result.apiVersion = this.#hubApiVersion;
    result.kind = this.#resource.kind;
    result.metadata ??= {};
    return result;
  }
}

/** @param mediaType --storage-media-type; kinds without a protobuf form (custom resources) are always stored as JSON */
export function newObjectCodec(resource: StoredResource, mediaType: string, memory: EntryMemory): ObjectCodec {
  const form = new StoredForm(resource);
  const { hub, stored } = form;
  const asProtobuf = mediaType === "application/vnd.kubernetes.protobuf" && hasProtobufForm(stored);
  const storedKind = resource.keepsVersions ? undefined : stored;
  const encodesProtobuf = asProtobuf && !resource.keepsVersions;
  // Objects stored in another version do not have the field layout of `before`.
  const shares = asProtobuf && form.converted === undefined;
  return {
    resource,
    memory,
    toStored(object) {
      const value = atOnce(form.of(object));
      return encodesProtobuf ? encodeProtobuf(value, stored) : encodeJson(value, storedKind);
    },
    *toStoredInSteps(object) {
      const value = yield* form.of(object);
      if (encodesProtobuf) return yield* encodeProtobufInSteps(value, stored);
      return Buffer.from(yield* encodeJsonTextInSteps(value, storedKind));
    },
    fromStored(bytes, before) {
      if (resource.keepsVersions) return objectOf(parseJson(bytes));
      if (!isProtobuf(bytes)) return form.toHub(objectOf(parseJson(bytes)));
      return form.toHub(before !== undefined && shares ? decodeProtobufReusing(bytes, before) : decodeProtobuf(bytes));
    },
    *fromStoredInSteps(bytes, before) {
      if (resource.keepsVersions) return objectOf(yield* parseLargeJson(bytes));
      if (!isProtobuf(bytes)) return yield* form.toHubInSteps(objectOf(yield* parseLargeJson(bytes)));
      const decoding =
        before !== undefined && shares ? decodeProtobufReusingInSteps(bytes, before) : decodeProtobufInSteps(bytes);
      return yield* form.toHubInSteps(yield* decoding);
    },
    toJson: (object) => encodeJsonText(object, hub),
    toJsonInSteps: (object) => encodeJsonTextInSteps(object, hub),
    fromJson: (bytes) => parseJson(bytes) as KubeObject, // cast: the bytes are those of `toJson`, above
    fieldsOf(object) {
      const fields: Record<string, string> = { "metadata.name": object.metadata.name ?? "" };
      if (resource.namespaced) fields["metadata.namespace"] = object.metadata.namespace ?? "";
      return resource.selectableFields === undefined ? fields : { ...fields, ...resource.selectableFields(object) };
    },
  };
}

function isProtobuf(bytes: Buffer): boolean {
  return bytes.length > 4 && bytes.subarray(0, 4).equals(protobufMagic);
}

/** A value from etcd, which other programs may have written, with metadata. @throws Error when it cannot be an object */
function objectOf(value: unknown): KubeObject {
  if (!isJsonObject(value)) throw new Error("the value is not a JSON object");
  value["metadata"] ??= {};
  if (!isJsonObject(value["metadata"])) throw new Error("the metadata of the value are not a JSON object");
  return value as Unstructured; // cast: an object with metadata, by the lines above; its fields were checked when it was written
}
