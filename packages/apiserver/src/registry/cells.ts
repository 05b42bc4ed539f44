import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { KubeObject, LabelSelector } from "@coxswain/apimachinery/objects/meta/types";
import type { Ages, TableColumn, TableColumns } from "./generic/strategy.ts";

/**
 * Table columns and cells shared by several kinds.
 * Source: pkg/printers/internalversion/printers.go
 */
export const nameColumn: TableColumn = {
  name: "Name",
  type: "string",
  format: "name",
  description:
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: http://kubernetes.io/docs/user-guide/identifiers#names",
};

export const ageColumn: TableColumn = {
  name: "Age",
  type: "string",
  description:
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
};

export function text(name: string, description = "", priority = 0): TableColumn {
  return { name, type: "string", description, priority };
}

export function wide(name: string, description = ""): TableColumn {
  return { name, type: "string", description, priority: 1 };
}

export function integer(name: string, description = ""): TableColumn {
  return { name, type: "integer", description };
}

export function flag(name: string, description = ""): TableColumn {
  return { name, type: "boolean", description };
}

/** Age of a timestamp (`5d3h`); `<unknown>` when it is missing or invalid. */
export function since(time: string | null | undefined, ages: Ages): string {
  const ms = time ? parseTime(time) : undefined;
  return ms === undefined ? "<unknown>" : ages.since(ms);
}

export function age(object: KubeObject, ages: Ages): string {
  return since(object.metadata.creationTimestamp, ages);
}

/** `a=1,b=2` in key order; `<none>` for an empty map. */
export function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  const keys = Object.keys(labels ?? {}).sort();
  return keys.length === 0 ? "<none>" : keys.map((key) => `${key}=${(labels as Record<string, string>)[key]}`).join(",");
}

/** A selector in the notation of `kubectl get -o wide`. */
export function selectorText(selector: LabelSelector | undefined): string {
  if (selector === undefined || selector === null) return "<none>";
  const terms: { key: string; text: string }[] = [];
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) terms.push({ key, text: `${key}=${value}` });
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    const list = [...values].sort().join(",");
    if (operator === "In") terms.push({ key, text: `${key} in (${list})` });
    else if (operator === "NotIn") terms.push({ key, text: `${key} notin (${list})` });
    else if (operator === "Exists") terms.push({ key, text: key });
    else if (operator === "DoesNotExist") terms.push({ key, text: `!${key}` });
    else return "<error>";
  }
  if (terms.length === 0) return "<none>";
  return terms
    .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .map((term) => term.text)
    .join(",");
}

interface Named {
  name?: string;
  image?: string;
}

/** Cells of the columns Containers and Images of a pod template. */
export function containerCells(containers: readonly Named[] | undefined): [string, string] {
  const list = containers ?? [];
  return [list.map((c) => c.name ?? "").join(","), list.map((c) => c.image ?? "").join(",")];
}

/** A table with a typed cells function. */
export function tableOf<T>(columns: readonly TableColumn[], cells: (object: T, ages: Ages) => readonly unknown[]): TableColumns {
  return { columns, cells: (object, ages) => cells(object as unknown as T, ages) };
}
