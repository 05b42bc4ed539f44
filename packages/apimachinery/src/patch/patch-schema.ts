import type { FieldType, TypeDescriptor } from "../schema/descriptor.ts";

/** What a strategic merge has to know of a field. */
export interface PatchField {
  /** Type of what is inside: of the object itself, or of a list's elements. undefined when the schema does not say. */
  readonly inner: FieldType | undefined;
  /** `merge`, `replace` or none. */
  readonly strategy: string | undefined;
  readonly retainKeys: boolean;
  readonly mergeKey: string | undefined;
}

const unknownField: PatchField = { inner: undefined, strategy: undefined, retainKeys: false, mergeKey: undefined };

/** @param type of the object that has the field; undefined for objects without schema */
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
 * The same for a merge, which refuses what is no field.
 * @throws Error in upstream's words (its answer is 500)
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

/** The same of a list. */
export function mergeListField(type: FieldType, name: string): ReturnType<typeof mergeField> {
  const field = mergeField(type, name);
  const isList = type.kind === "struct" && type.struct.field(name)?.type.kind === "list";
  if (isList) return field;
  throw new Error("expected slice or array type, but got: struct");
}

export function structOf(descriptor: TypeDescriptor): FieldType {
  return { kind: "struct", struct: descriptor, goType: descriptor.goName };
}
