/**
 * Objects in the form the client asked for instead of their own: Table and PartialObjectMetadata.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/response.go
 */
import { badRequest, notAcceptable } from "@coxswain/apimachinery/errors/status-error";
import type { KubeObject, ListMeta, Unstructured } from "@coxswain/apimachinery/meta/types";
import type { TableColumns } from "../registry/generic/strategy.ts";

export type IncludeObject = "None" | "Metadata" | "Object";

export interface TableRow {
  cells: unknown[];
  object?: unknown;
}

/** @throws BadRequest for another value. */
export function includeObjectParam(query: URLSearchParams): IncludeObject {
  const value = query.get("includeObject") ?? "";
  if (value === "") return "Metadata";
  if (value === "None" || value === "Metadata" || value === "Object") return value;
  throw badRequest(`unrecognized includeObject value: ${value}`);
}

/** `null` on the wire when the columns were sent before (all but the first event of a watch). */
export function columnDefinitions(columns: TableColumns): unknown[] {
  return columns.columns.map((column) => ({
    name: column.name,
    type: column.type,
    format: column.format ?? "",
    description: column.description ?? "",
    priority: column.priority ?? 0,
  }));
}

/**
 * @param hub what the columns are computed from
 * @param versioned the object as this version shows it, for `includeObject=Object`
 */
export function tableRow(
  columns: TableColumns,
  hub: KubeObject,
  versioned: () => KubeObject,
  options: { includeObject: IncludeObject; metaVersion: string; now: number },
): TableRow {
  const cells = [...columns.cells(hub as Unstructured, options.now)];
  if (options.includeObject === "None") return { cells };
  if (options.includeObject === "Object") return { cells, object: versioned() };
  return { cells, object: partialMetadata(hub, options.metaVersion) };
}

export function table(metadata: ListMeta, definitions: unknown[] | null, rows: TableRow[], metaVersion: string): Unstructured {
  return {
    kind: "Table",
    apiVersion: `meta.k8s.io/${metaVersion}`,
    metadata: metadata as never,
    columnDefinitions: definitions,
    rows,
  };
}

export function partialMetadata(object: KubeObject, metaVersion: string): KubeObject {
  return { kind: "PartialObjectMetadata", apiVersion: `meta.k8s.io/${metaVersion}`, metadata: object.metadata };
}

export function listWantedAsObject(): Error {
  return notAcceptable("you requested PartialObjectMetadata, but the requested object is a list");
}

export function objectWantedAsList(): Error {
  return notAcceptable("you requested PartialObjectMetadataList, but the requested object is not a list");
}
