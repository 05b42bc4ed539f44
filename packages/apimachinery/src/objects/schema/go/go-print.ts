import { GoText } from "../../errors/go-syntax.ts";
import { goQuote } from "../../meta/go-quote.ts";
import { rawJson } from "../../meta/json-value.ts";
import type { LabelSelector } from "../../meta/types.ts";
import { type GoValue, goValue, quantityOf } from "./go-value.ts";

/**
 * An object as upstream quotes it in errors, `core.PodTemplateSpec{ObjectMeta:v1.ObjectMeta{Name:"", …`: the internal
 * struct printed with Go's `%#v`. Pointers are printed as an address, which is a constant here.
 * @param type e.g. `core/v1.PodSpec` or `[]core/v1.Volume`
 * @param value undefined or null for a nil pointer
 */
export function goStruct(type: string, value: unknown): GoText {
  return new GoText(value === undefined || value === null ? "null" : goPrint(goValue(type, value)));
}

/** As `goStruct`, for one field of a struct by its Go name, e.g. `core.ResourceList(nil)`. @throws Error for an unknown field */
export function goField(type: string, value: unknown, name: string): GoText {
  const struct = goValue(type, value);
  const field = struct.kind === "struct" ? struct.fields.find((one) => one.name === name) : undefined;
  if (field === undefined) throw new Error(`no field ${name} in ${type}`);
  return new GoText(goPrint(field.value));
}

/** As `goStruct`, for a LabelSelector. */
export const goLabelSelector = (selector: LabelSelector | undefined | null): GoText =>
  goStruct("meta/v1.LabelSelector", selector);

/** A RawExtension, which upstream holds as runtime.Unknown with the raw bytes; `null` when absent. */
export function goUnknown(value: unknown): GoText {
  if (value === undefined || value === null) return new GoText("null");
  // JSON.stringify does not support the bigints that represent integers beyond 2^53.
  const text = JSON.stringify(value, (_key, part) => (typeof part === "bigint" ? rawJson(String(part)) : part));
  const bytes = [...Buffer.from(text)].map((byte) => `0x${byte.toString(16)}`);
  const type = 'TypeMeta:runtime.TypeMeta{APIVersion:"", Kind:""}';
  return new GoText(
    `runtime.Unknown{${type}, Raw:[]uint8{${bytes.join(", ")}}, ContentEncoding:"", ContentType:"application/json"}`,
  );
}

/** A quantity printed by value: `resource.Quantity{i:resource.int64Amount{value:500, scale:-3}, …, s:"500m", …`. */
export function goQuantity(text: string): GoText {
  return new GoText(goPrint(quantityOf(text)));
}

const address = "0xc000000000";

function goPrint(value: GoValue): string {
  switch (value.kind) {
    case "scalar":
      return value.syntax;
    case "struct":
      return `${value.type}{${value.fields.map((field) => `${field.name}:${goPrint(field.value)}`).join(", ")}}`;
    case "list":
      return value.items === undefined ? `${value.type}(nil)` : `${value.type}{${value.items.map(goPrint).join(", ")}}`;
    case "map":
      return value.entries === undefined
        ? `${value.type}(nil)`
        : `${value.type}{${value.entries.map((entry) => `${goQuote(entry.key)}:${goPrint(entry.value)}`).join(", ")}}`;
    case "pointer":
      return `(*${value.type})(${value.to === undefined ? "nil" : address})`;
  }
}
