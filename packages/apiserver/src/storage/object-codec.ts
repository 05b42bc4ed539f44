import { encodeJson, encodeJsonText, parseJson } from "@coxswain/apimachinery/codec/json";
import { decodeProtobuf, encodeProtobuf, hasProtobufForm } from "@coxswain/apimachinery/codec/protobuf";
import { decodeProtobufReusing, type EncodedObject } from "@coxswain/apimachinery/codec/protobuf-reuse";
import { deepClone } from "@coxswain/apimachinery/meta/deep-equal";
import { formatGroupVersion, type GroupResource, type GroupVersionKind } from "@coxswain/apimachinery/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { EntryCodec, EntryMemory } from "./entry.ts";

interface StoredVersion {
  readonly version: string;
  readonly defaults?: (object: KubeObject) => void;
  readonly toHub?: (object: KubeObject) => KubeObject;
  readonly fromHub?: (object: KubeObject) => KubeObject;
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
  readonly strategy?: { decorate?(object: KubeObject): void };
  readonly cacheIndexes?: readonly string[];
  /** Objects are stored and returned in the version they were written in; the caller converts them (custom resources). */
  readonly keepsVersions?: boolean;
}

/** Converts objects of one resource to the stored bytes and back, and to the hub version's JSON, which caches hold. */
export interface ObjectCodec extends EntryCodec {
  readonly resource: StoredResource;
  /** Encodes the object in the storage version, without resourceVersion and selfLink. */
  toStored(object: KubeObject): Buffer;
  /**
   * Decodes JSON or protobuf to the hub version, with defaults and without resourceVersion.
   * @param before an earlier state of the same object and the bytes that `toStored` made of it; equal parts may be shared with it
   */
  fromStored(bytes: Buffer, before?: EncodedObject): KubeObject;
}

const protobufMagic = Buffer.from("k8s\0");

/** @param mediaType --storage-media-type; kinds without a protobuf form (custom resources) are always stored as JSON */
export function newObjectCodec(resource: StoredResource, mediaType: string, memory: EntryMemory): ObjectCodec {
  const hub: GroupVersionKind = { group: resource.hubGroup ?? resource.group, version: resource.hub, kind: resource.kind };
  const stored: GroupVersionKind = resource.storage === undefined ? hub : { ...resource.storage, kind: resource.kind };
  const hubApiVersion = formatGroupVersion(hub);
  const storedApiVersion = formatGroupVersion(stored);
  const asProtobuf = mediaType === "application/vnd.kubernetes.protobuf" && hasProtobufForm(stored);
  const byApiVersion = new Map<string, StoredVersion>();
  const known: readonly (StoredVersion & { readonly group?: string })[] = [
    ...(resource.formerVersions ?? []),
    ...resource.versions,
  ];
  for (const { group = resource.group, ...version } of known) {
    byApiVersion.set(formatGroupVersion({ group, version: version.version }), version);
  }
  const fromHub = storedApiVersion === hubApiVersion ? undefined : byApiVersion.get(storedApiVersion)?.fromHub;

  function toHub(object: KubeObject): KubeObject {
    const apiVersion = object.apiVersion ?? hubApiVersion;
    const version = byApiVersion.get(apiVersion);
    version?.defaults?.(object);
    let result = object;
    if (version?.toHub !== undefined) result = version.toHub(object);
    result.apiVersion = hubApiVersion;
    result.kind = resource.kind;
    result.metadata ??= {};
    resource.strategy?.decorate?.(result);
    return result;
  }

  return {
    resource,
    memory,
    toStored(object) {
      const { resourceVersion: _, selfLink: __, ...metadata } = object.metadata;
      if (resource.keepsVersions) return encodeJson({ ...object, metadata });
      let value: KubeObject = { ...object, apiVersion: hubApiVersion, kind: resource.kind, metadata };
      if (fromHub !== undefined) value = fromHub(deepClone(value));
      value.apiVersion = storedApiVersion;
      return asProtobuf ? encodeProtobuf(value, stored) : encodeJson(value, stored);
    },
    fromStored(bytes, before) {
      if (resource.keepsVersions) return asTheyAre(bytes);
      const isProtobuf = bytes.length > 4 && bytes.subarray(0, 4).equals(protobufMagic);
      if (!isProtobuf) return toHub(parseJson(bytes) as KubeObject);
      // Objects stored in another version do not have the field layout of `before`.
      const shares = before !== undefined && asProtobuf && fromHub === undefined;
      return toHub(shares ? decodeProtobufReusing(bytes, before) : decodeProtobuf(bytes));
    },
    toJson(object) {
      return encodeJsonText(object, hub);
    },
    fromJson(bytes) {
      return parseJson(bytes) as KubeObject;
    },
    fieldsOf(object) {
      const fields: Record<string, string> = { "metadata.name": object.metadata.name ?? "" };
      if (resource.namespaced) fields["metadata.namespace"] = object.metadata.namespace ?? "";
      return resource.selectableFields === undefined ? fields : { ...fields, ...resource.selectableFields(object) };
    },
  };
}

function asTheyAre(bytes: Buffer): KubeObject {
  const object = parseJson(bytes) as KubeObject;
  object.metadata ??= {};
  return object;
}
