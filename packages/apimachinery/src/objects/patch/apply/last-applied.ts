/**
 * The annotation of client-side `kubectl apply`. `kubectl apply --server-side` takes over the fields it lists without
 * conflicts, and the server keeps it current, so that users can switch back.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/fieldmanager/lastappliedmanager.go, lastappliedupdater.go
 */
import { encodeUntyped, parseJson } from "../../codec/json.ts";
import type { KubeObject, Unstructured } from "../../meta/types.ts";
import type { ApplyType } from "./apply-type.ts";
import { compare } from "./compare.ts";
import { difference, type FieldSet } from "./field-set.ts";
import { isFields } from "./list-items.ts";
import { fieldSetOf } from "./typed-value.ts";
import { validateTyped } from "./validate.ts";

export const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration";
const maxAnnotationsBytes = 256 * 1024;

/** True when the object has a non-empty last-applied annotation. */
export function hasLastApplied(object: KubeObject): boolean {
  return lastAppliedOf(object) !== "";
}

function lastAppliedOf(object: KubeObject): string {
  const { annotations } = object.metadata;
  return isFields(annotations) && Object.hasOwn(annotations, lastAppliedAnnotation)
    ? String(annotations[lastAppliedAnnotation] ?? "")
    : "";
}

/**
 * Fields that the last client-side apply set and that still have the applied value.
 * @returns undefined when the annotation is missing, invalid or of another version
 */
export function fieldsLastApplied(type: ApplyType, apiVersion: string, live: KubeObject): FieldSet | undefined {
  try {
    const config = parseJson(lastAppliedOf(live)) as Unstructured; // cast: other values make the lines below throw, which counts as invalid
    if (config.apiVersion !== apiVersion) return undefined;
    validateTyped(type, config);
    const changes = compare(type, config, live);
    return difference(difference(difference(fieldSetOf(type, config), changes.modified), changes.added), changes.removed);
  } catch {
    return undefined;
  }
}

/** @returns the object with the annotation for the configuration, or without it when annotations would exceed 256 KiB */
export function withLastApplied(object: KubeObject, config: Unstructured): KubeObject {
  const annotations: Record<string, string> = { ...object.metadata.annotations };
  annotations[lastAppliedAnnotation] = textOf(config);
  let size = 0;
  for (const [key, value] of Object.entries(annotations)) size += Buffer.byteLength(key) + Buffer.byteLength(value);
  if (size > maxAnnotationsBytes) delete annotations[lastAppliedAnnotation];
  return { ...object, metadata: { ...object.metadata, annotations } };
}

function textOf(config: Unstructured): string {
  // Cast: the client may have sent an object without metadata.
  const own: unknown = (config.metadata as Partial<KubeObject["metadata"]> | undefined)?.annotations;
  if (!isFields(own) || !Object.hasOwn(own, lastAppliedAnnotation)) return `${encodeUntyped(config)}\n`;
  const { [lastAppliedAnnotation]: _, ...annotations } = own;
  return `${encodeUntyped({ ...config, metadata: { ...config.metadata, annotations } })}\n`;
}
