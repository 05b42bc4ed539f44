/**
 * Parameters of operations. Query parameters are the fields of options types.
 * Source: k8s.io/apiserver pkg/endpoints/installer.go (AddObjectParams, typeToJSON)
 */
import type { FieldType, TypeDescriptor } from "../descriptor.ts";
import { scheme } from "../scheme.ts";
import { fieldDescription } from "./descriptions.ts";
import type { Method, Operation, Parameter, PathItem, Schema } from "./document.ts";

/** @param type an options type, e.g. `meta/v1.ListOptions`; an unknown type has no parameters */
export function queryParameters(type: string, except: readonly string[] = []): Parameter[] {
  const descriptor = scheme.type(type);
  if (descriptor === undefined) return [];
  return descriptor.fields.flatMap((field) => {
    const scalar = scalarOf(field.type);
    if (scalar === undefined || except.includes(field.name) || isTypeMeta(field.name, descriptor)) return [];
    return [query(field.name, scalar, fieldDescription(descriptor, field))];
  });
}

function isTypeMeta(name: string, type: TypeDescriptor): boolean {
  return type.isKind && (name === "kind" || name === "apiVersion");
}

/** Type of the query parameter; the element type for lists; undefined for types without query encoding, e.g. times. */
function scalarOf(type: FieldType): string | undefined {
  switch (type.kind) {
    case "list":
      return scalarOf(type.element);
    case "string":
      return "string";
    case "bool":
      return "boolean";
    case "int32":
    case "int64":
      return "integer";
    default:
      return undefined;
  }
}

/** An optional query parameter. @param type of OpenAPI 2: `string`, `boolean`, `integer` */
export function query(name: string, type: string, description: string): Parameter {
  return { name, in: "query", description, type, uniqueItems: true };
}

export function pathParameter(name: string, description: string): Parameter {
  return { name, in: "path", description, required: true, type: "string", uniqueItems: true };
}

/** The body of a request; an operation has one at most. */
export function body(schema: Schema, required: boolean): Parameter {
  return { name: "body", in: "body", ...(required && { required }), schema };
}

/** A path item; parameters common to all operations, except bodies, are moved to the path. */
export function pathItem(operations: Partial<Record<Method, Operation>>): PathItem {
  const lists = Object.values(operations).map(({ parameters }) => parameters ?? []);
  const shared = (lists[0] ?? []).filter(
    (one) => one.in !== "body" && lists.every((list) => list.some((other) => isSame(one, other))),
  );
  const item: PathItem = {};
  for (const [method, operation] of Object.entries(operations)) {
    const own = (operation.parameters ?? []).filter((one) => !shared.some((other) => isSame(one, other)));
    const { parameters: _, ...rest } = operation;
    // Cast: the rest of a path item are its methods.
    item[method as Method] = { ...rest, ...(own.length > 0 && { parameters: own.sort(byName) }) };
  }
  if (shared.length > 0) item.parameters = shared.sort(byName);
  return item;
}

function isSame(a: Parameter, b: Parameter): boolean {
  return a.name === b.name && a.in === b.in;
}

function byName(a: Parameter, b: Parameter): number {
  return a.name === b.name ? (a.in < b.in ? -1 : 1) : a.name < b.name ? -1 : 1;
}
