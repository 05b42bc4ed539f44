/**
 * Renders objects as Table and PartialObjectMetadata. Tables are assembled as text, since the
 * embedded objects are already encoded.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/response.go
 */

import { encodeJsonText } from "@coxswain/apimachinery/objects/codec/json";
import { rawJson } from "@coxswain/apimachinery/objects/codec/json-encode";
import { badRequest, notAcceptable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject, ListMeta, Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { agesAt } from "../registry/generic/ages.ts";
import type { ResourceDefinition } from "../registry/generic/resource.ts";
import type { TableColumns } from "../registry/generic/strategy.ts";
import type { Entry } from "../storage/storage.ts";
import { jsonOf } from "./convert.ts";
import type { ServedResource } from "./served-resources.ts";

type IncludeObject = "None" | "Metadata" | "Object";

/** @throws BadRequest for another value */
export function includeObjectParam(query: URLSearchParams): IncludeObject {
  const value = query.get("includeObject") ?? "";
  if (value === "") return "Metadata";
  if (value === "None" || value === "Metadata" || value === "Object") return value;
  const why = `includeObject: Invalid value: ${JSON.stringify(value)}: must be 'Metadata', 'Object', 'None', or empty`;
  throw badRequest(`Unable to convert to Table as requested: ${why}`);
}

export interface TableOptions {
  readonly includeObject: IncludeObject;
  /** `v1` or `v1beta1`. */
  readonly metaVersion: string;
  /** Milliseconds since the epoch, for ages. */
  readonly now: number;
}

/**
 * A Table as JSON without a trailing newline. @param columns undefined when they were sent before (watch events after the first)
 */
export function tableJson(
  served: ServedResource,
  metadata: ListMeta,
  entries: readonly Entry[],
  options: TableOptions,
  columns: TableColumns | undefined,
): string {
  const rows = entries.map((entry) => rowJson(served, entry, options));
  return `${tableHead(metadata, options, columns)}${rows.join(",")}]}`;
}

/** The start of a Table up to its first row; `]}` completes it after the last one. */
export function tableHead(metadata: ListMeta, options: TableOptions, columns: TableColumns | undefined): string {
  return (
    `{"kind":"Table","apiVersion":"meta.k8s.io/${options.metaVersion}","metadata":${JSON.stringify(metadata)},` +
    `"columnDefinitions":${columns === undefined ? "null" : columnsJson(columns)},"rows":[`
  );
}

function columnsJson(columns: TableColumns): string {
  return JSON.stringify(
    columns.columns.map((column) => ({
      name: column.name,
      type: column.type,
      format: column.format ?? "",
      description: column.description ?? "",
      priority: column.priority ?? 0,
    })),
  );
}

/** One row of a Table as JSON. */
export function rowJson(served: ServedResource, entry: Entry, options: TableOptions): string {
  const cells = rawJson(served.definition.table.cells(entry.object<Unstructured>(), agesAt(options.now)));
  switch (options.includeObject) {
    case "None":
      return `{"cells":${cells},"object":null}`;
    case "Object":
      return `{"cells":${cells},"object":${jsonOf(entry, served)}}`;
    case "Metadata":
      return `{"cells":${cells},"object":${partialMetadataJson(entry, options.metaVersion)}}`;
  }
}

/** The entry's metadata as PartialObjectMetadata JSON, memoized. */
function partialMetadataJson(entry: Entry, metaVersion: string): string {
  return entry.memo(`metadata:${metaVersion}`, () => {
    const kind = { group: "meta.k8s.io", version: metaVersion, kind: "PartialObjectMetadata" };
    return encodeJsonText(partialMetadata(entry.object(), metaVersion), kind);
  });
}

/** The object's metadata as PartialObjectMetadata; shares `metadata` with the object. */
export function partialMetadata(object: KubeObject, metaVersion: string): KubeObject {
  return { kind: "PartialObjectMetadata", apiVersion: `meta.k8s.io/${metaVersion}`, metadata: object.metadata };
}

/** 406 for a list requested as a single PartialObjectMetadata. */
export function listRequestedAsObject(definition: ResourceDefinition): Error {
  const list = definition.custom ? "unstructured.UnstructuredList" : `${goPackage(definition)}.${definition.listKind}`;
  return notAcceptable(`you requested PartialObjectMetadata, but the requested object is a list (*${list})`);
}

/** 406 for an object requested as PartialObjectMetadataList. */
export function objectRequestedAsList(definition: ResourceDefinition): Error {
  const object = definition.custom ? "unstructured.Unstructured" : `${goPackage(definition)}.${definition.kind}`;
  return notAcceptable(`you requested PartialObjectMetadataList, but the requested object is not a list (*${object})`);
}

/** As `objectRequestedAsList`, for a response that is not stored. */
export function responseRequestedAsList({ apiVersion = "", kind = "" }: KubeObject): Error {
  const [group = ""] = apiVersion.split(".", 1)[0]?.split("/") ?? [];
  return notAcceptable(`you requested PartialObjectMetadataList, but the requested object is not a list (*${group}.${kind})`);
}

/** The Go package of the group's types, which appears in upstream's error texts. Events are one type in two groups. */
function goPackage({ group }: ResourceDefinition): string {
  if (group === "" || group === "events.k8s.io") return "core";
  return group === "internal.apiserver.k8s.io" ? "apiserverinternal" : (group.split(".", 1)[0] ?? "");
}
