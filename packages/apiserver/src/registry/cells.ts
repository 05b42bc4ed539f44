import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { KubeObject, LabelSelector } from "@coxswain/apimachinery/objects/meta/types";
import type { Ages, TableColumns } from "./generic/strategy.ts";
import tableColumns from "./table-columns.json" with { type: "json" };

/**
 * Table columns and cells shared by several kinds.
 * Source: pkg/printers/internalversion/printers.go
 */
/** Age of a timestamp (`5d3h`); `<unknown>` when it is missing or invalid. */
export function since(time: string | null | undefined, ages: Ages): string {
  const ms = time ? parseTime(time) : undefined;
  return ms === undefined ? "<unknown>" : ages.since(ms);
}

/** Age since the creation; `<unknown>` without a valid creationTimestamp. */
export function age(object: KubeObject, ages: Ages): string {
  return since(object.metadata.creationTimestamp, ages);
}

/** `a=1,b=2` in key order; `<none>` for an empty map. */
export function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  const keys = Object.keys(labels ?? {}).sort();
  return keys.length === 0 ? "<none>" : keys.map((key) => `${key}=${labels![key]}`).join(",");
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

/** The first three texts and the number of the others: `a,b,c + 2 more...`; `<unset>` without any. */
export function firstThree(texts: readonly string[]): string {
  if (texts.length === 0) return "<unset>";
  return texts.length <= 3 ? texts.join(",") : `${texts.slice(0, 3).join(",")} + ${texts.length - 3} more...`;
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

/**
 * The table of a resource.
 * @param resource key of its columns in `table-columns.json`, where `"name"` and `"age"` are the columns that most tables share
 * @param cells returns one cell for each column
 */
export function tableOf<T>(
  resource: keyof typeof tableColumns.tables,
  cells: (object: T, ages: Ages) => readonly unknown[],
): TableColumns {
  const { shared } = tableColumns;
  const columns = tableColumns.tables[resource].map((column) =>
    // Cast: texts in the table are keys of `shared`.
    typeof column === "string" ? shared[column as keyof typeof shared] : column,
  );
  return { columns, cells: (object, ages) => cells(object as T, ages) }; // cast: the table is given objects of its resource
}
