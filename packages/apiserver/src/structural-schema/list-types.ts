import {
  child,
  type FieldError,
  forbiddenField,
  invalidValue,
  mapKey,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { hasDefault, itemsOf, propertyOf, type Schema } from "./schema.ts";
import { goSchemas } from "./schema-text.ts";

const listTypes = ["atomic", "set", "map"];

/** Validates x-kubernetes-list-type and list-map-keys. Source: ValidateCustomResourceDefinitionOpenAPISchema */
export function listRules(schema: Schema, path: string, atomicSets: boolean): FieldError[] {
  const at = child(path, "x-kubernetes-list-type");
  const listType = schema["x-kubernetes-list-type"] ?? undefined;
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  const errors: FieldError[] = [];
  if (listType !== undefined && schema.type !== "array") errors.push(typeMustBe("array", schema, path, "x-kubernetes-list-type"));
  else if (atomicSets) errors.push(...setRules(schema, path));
  if (listType !== undefined && !listTypes.includes(listType)) errors.push(notSupported(at, listType, listTypes));
  if (keys.length > 0 && listType !== "map") {
    const text = "must be map if x-kubernetes-list-map-keys is non-empty";
    errors.push(listType === undefined ? required(at, text) : invalidValue(at, listType, text));
  }
  return listType === "map" ? [...errors, ...mapRules(schema, keys, path)] : errors;
}

/** Items of a set are compared as a whole, so lists and maps among them must be atomic. */
function setRules(schema: Schema, path: string): FieldError[] {
  const items = itemsOf(schema);
  if (schema["x-kubernetes-list-type"] !== "set" || !items) return [];
  const text = "must be atomic as item of a list with x-kubernetes-list-type=set";
  const listType = items["x-kubernetes-list-type"] ?? undefined;
  // Upstream reports the list type as the bad value of the map type, too.
  if (items.type === "array" && listType !== undefined && listType !== "atomic")
    return [invalidValue(child(path, "items", "x-kubernetes-list-type"), listType, text)];
  if (items.type === "object" && items["x-kubernetes-map-type"] !== "atomic")
    return [invalidValue(child(path, "items", "x-kubernetes-map-type"), listType ?? null, text)];
  return [];
}

function mapRules(schema: Schema, keys: readonly string[], path: string): FieldError[] {
  const at = child(path, "x-kubernetes-list-map-keys");
  const items = itemsOf(schema);
  const errors = keys.length === 0 ? [required(at, "must not be empty if x-kubernetes-list-type is map")] : [];
  if (schema.items === undefined || schema.items === null)
    return [...errors, required(child(path, "items"), "must have a schema if x-kubernetes-list-type is map")];
  if (!items) {
    const text = "must only have a single schema if x-kubernetes-list-type is map";
    // Cast: one schema was handled above.
    return [...errors, invalidValue(child(path, "items"), goSchemas(schema.items as Schema[]), text)];
  }
  if (items.type !== "object") {
    const text = "must be object if parent array's x-kubernetes-list-type is map";
    return [...errors, invalidValue(child(path, "items", "type"), items.type ?? "", text)];
  }
  const seen = new Set<string>();
  for (const key of keys) {
    const property = propertyOf(items, key);
    if (!property) errors.push(invalidValue(at, keys, "entries must all be names of item properties"));
    else if (property.type === "array" || property.type === "object") {
      const text = "must be a scalar type if parent array's x-kubernetes-list-type is map";
      errors.push(invalidValue(child(mapKey(child(path, "items", "properties"), key), "type"), items.type, text));
    }
    if (seen.size === seen.add(key).size) errors.push(invalidValue(at, keys, "must not contain duplicate entries"));
  }
  return errors;
}

/** Items of sets and maps must not be nullable; map keys must be required or have a default. Source: validateMapListKeysMapSet */
export function listMapKeyRules(schema: Schema, path: string): FieldError[] {
  const items = itemsOf(schema);
  const listType = schema["x-kubernetes-list-type"];
  if (!items || (listType !== "set" && listType !== "map")) return [];
  const errors: FieldError[] = [];
  if (items.nullable)
    errors.push(
      forbiddenField(child(path, "items", "nullable"), `cannot be nullable when x-kubernetes-list-type is ${listType}`),
    );
  if (listType === "set") return errors;
  const needed = new Set(items.required);
  for (const key of schema["x-kubernetes-list-map-keys"] ?? []) {
    const property = propertyOf(items, key);
    if (!property) continue;
    const at = mapKey(child(path, "items", "properties"), key);
    const because = "this property is in x-kubernetes-list-map-keys, so it";
    if (!needed.has(key) && !hasDefault(property))
      errors.push(required(child(at, "default"), `${because} must have a default or be a required property`));
    if (property.nullable) errors.push(forbiddenField(child(at, "nullable"), `${because} cannot be nullable`));
  }
  return errors;
}

/** Error when a keyword requires another type. @param word the keyword, e.g. `x-kubernetes-list-type` */
export function typeMustBe(type: string, schema: Schema, path: string, word: string): FieldError {
  const at = child(path, "type");
  const text = `must be ${type} if ${word} is specified`;
  return schema.type ? invalidValue(at, schema.type, text) : required(at, text);
}
