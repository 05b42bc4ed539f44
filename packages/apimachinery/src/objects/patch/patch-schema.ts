import type { FieldType, TypeDescriptor } from "../schema/descriptor.ts";

/** Strategic merge metadata of a field. */
interface PatchField {
  /** Type of the field's value, or of the elements of a list; undefined when the schema does not have it. */
  readonly inner: FieldType | undefined;
  /** `merge`, `replace` or undefined. */
  readonly strategy: string | undefined;
  readonly retainKeys: boolean;
  readonly mergeKey: string | undefined;
}

const unknownField: PatchField = { inner: undefined, strategy: undefined, retainKeys: false, mergeKey: undefined };

/** @param type type of the object with the field; undefined for objects without schema */
export function patchField(type: FieldType | undefined, name: string): PatchField {
  if (type === undefined) return unknownField;
  if (type.kind === "map") return { ...unknownField, inner: innerOf(type.value) };
  if (type.kind !== "struct") return unknownField;
  const field = type.struct.field(name);
  if (field === undefined) return unknownField;
  return {
    inner: innerOf(field.type),
    strategy: field.patchStrategy.find((part) => part !== "retainKeys"),
    retainKeys: field.patchStrategy.includes("retainKeys"),
    mergeKey: field.patchMergeKey,
  };
}

function innerOf(type: FieldType): FieldType {
  return type.kind === "list" ? type.element : type;
}

/**
 * As `patchField`, but requires that the schema has the field.
 * @throws Error with upstream's text (500, as upstream) for an unknown field
 */
export function mergeField(type: FieldType, name: string): PatchField & { readonly inner: FieldType } {
  if (type.kind === "map" || type.kind === "list") {
    const kind = type.kind === "list" ? "slice" : type.kind;
    throw new Error(`merging an object in json but data type is not struct, instead is: ${kind}`);
  }
  const field = patchField(type, name);
  if (field.inner !== undefined) return { ...field, inner: field.inner };
  const goName = type.kind === "struct" ? type.struct.goName : type.goType.slice(type.goType.lastIndexOf(".") + 1);
  throw new Error(`unable to find api field in struct ${goName} for the json field ${JSON.stringify(name)}`);
}

/** As `mergeField`, but requires a list. */
export function mergeListField(type: FieldType, name: string): ReturnType<typeof mergeField> {
  const field = mergeField(type, name);
  const isList = type.kind === "struct" && type.struct.field(name)?.type.kind === "list";
  if (isList) return field;
  throw new Error("expected slice or array type, but got: struct");
}

/** A descriptor as a FieldType. */
export function structOf(descriptor: TypeDescriptor): FieldType {
  return { kind: "struct", struct: descriptor, goType: descriptor.goName };
}
