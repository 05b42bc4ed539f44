/**
 * Table columns of a custom resource, from its `additionalPrinterColumns`.
 * Source: apiextensions-apiserver pkg/registry/customresource/tableconvertor/tableconvertor.go
 */
import { encodeAny } from "@coxswain/apimachinery/objects/codec/json-encode";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import type { CustomResourceColumnDefinition } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import { nameAndCreated } from "../registry/definition.ts";
import type { Ages, TableColumn, TableColumns } from "../registry/generic/strategy.ts";
import { type JsonPath, PathBudget, parseJsonPath } from "./json-path.ts";

// Cast: the table has these two columns.
const [nameColumn, createdColumn] = nameAndCreated.columns as readonly [TableColumn, TableColumn];

/** Default of a version without additionalPrinterColumns. */
const ageColumn: CustomResourceColumnDefinition = {
  name: "Age",
  type: "date",
  description: createdColumn.description ?? "",
  jsonPath: ".metadata.creationTimestamp",
};

/** @throws Error for an invalid JSONPath; the definition is then not served */
export function columnsOf(definitions: readonly CustomResourceColumnDefinition[] | undefined): TableColumns {
  const columns = (definitions?.length ? definitions : [ageColumn]).map((column) => ({ column, path: pathOf(column) }));
  return {
    columns: [
      nameColumn,
      ...columns.map(({ column: { name, type, format, description, priority, jsonPath } }) => ({
        name,
        type,
        format: format ?? "",
        description: description || `Custom resource definition column (in JSONPath format): ${jsonPath}`,
        priority: priority ?? 0,
      })),
    ],
    cells(object: Unstructured, ages: Ages) {
      const budget = new PathBudget();
      return [
        object.metadata.name ?? "",
        ...columns.map(({ column, path }) => cell(column.type, found(path, object, budget), ages)),
      ];
    },
  };
}

function pathOf({ jsonPath }: CustomResourceColumnDefinition): JsonPath {
  try {
    return parseJsonPath(jsonPath);
  } catch (err) {
    throw new Error(`unrecognized column definition ${JSON.stringify(jsonPath)}`, { cause: err });
  }
}

/** The first value at a path; undefined when there is none or the path fails. */
function found(path: JsonPath, object: Unstructured, budget: PathBudget): unknown {
  try {
    return path(object, budget)[0];
  } catch {
    return undefined;
  }
}

function cell(type: string, value: unknown, ages: Ages): unknown {
  if (value === undefined) return null;
  if (type === "string") return textOf(value);
  switch (type) {
    case "integer":
      return typeof value === "number" ? Math.trunc(value) : typeof value === "bigint" ? value : null;
    case "number":
      return typeof value === "number" || typeof value === "bigint" ? Number(value) : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "date":
      return typeof value === "string" ? age(value, ages) : null;
    default:
      return null;
  }
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === null) return "<nil>";
  return typeof value === "object" ? encodeAny(value) : String(value);
}

function age(text: string, ages: Ages): string {
  if (text === "" || text === "null") return "<unknown>";
  const ms = parseTime(text);
  return ms === undefined ? "<invalid>" : ages.since(ms);
}
