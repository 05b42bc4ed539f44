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

export function structOf(descriptor: TypeDescriptor): FieldType {
  return { kind: "struct", struct: descriptor, goType: descriptor.goName };
}
