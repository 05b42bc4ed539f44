import { child, type FieldError, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import type {
  CustomResourceColumnDefinition,
  CustomResourceDefinitionVersion,
  CustomResourceSubresources,
} from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import { need, saying } from "../../rules.ts";

const longestWarning = 256;

/** An own warning requires `deprecated: true` and has 1 to 256 bytes of printable text. Source: validateDeprecationWarning */
export function validateDeprecation(version: CustomResourceDefinitionVersion, path: string): FieldError[] {
  const { deprecated = false, deprecationWarning: warning } = version;
  if (warning === undefined || warning === null) return [];
  return saying(warningFaults(deprecated, warning), warning, child(path, "deprecationWarning"));
}

function warningFaults(deprecated: boolean, warning: string): string[] {
  if (!deprecated) return ["can only be set for deprecated versions"];
  const faults: string[] = [];
  if (Buffer.byteLength(warning) > longestWarning) faults.push(`must be <= ${longestWarning} characters long`);
  if (warning === "") faults.push("must not be an empty string");
  const at = warning.search(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u);
  if (at >= 0) {
    const byte = Buffer.byteLength(warning.slice(0, at));
    faults.push(`must only contain printable UTF-8 characters; non-printable character found at index ${byte}`);
  }
  return faults;
}

/** Checks only the prefix of a path, like upstream. Source: validateSimpleJSONPath */
function simplePath(value: string, path: string): FieldError[] {
  return value.startsWith(".") ? [] : [invalidValue(path, value, "must be a simple json path starting with .")];
}

function pathBelow(value: string, parts: readonly string[], text: string, path: string): FieldError[] {
  const errors = simplePath(value, path);
  if (errors.length > 0 || parts.some((part) => value.startsWith(`.${part}.`))) return errors;
  return [invalidValue(path, value, `should be a json path under ${text}`)];
}

/**
 * Paths of the scale: the desired replicas below `.spec`, the present ones below `.status`, the selector below either.
 * Source: ValidateCustomResourceDefinitionSubresources
 */
export function validateSubresources(subresources: CustomResourceSubresources | undefined, path: string): FieldError[] {
  const scale = subresources?.scale;
  if (!scale) return [];
  const at = (field: string): string => child(path, "scale", field);
  const { specReplicasPath: wanted, statusReplicasPath: present, labelSelectorPath: selector } = scale;
  const either = "either .spec or .status";
  return [
    ...(wanted ? pathBelow(wanted, ["spec"], ".spec", at("specReplicasPath")) : [required(at("specReplicasPath"))]),
    ...(present ? pathBelow(present, ["status"], ".status", at("statusReplicasPath")) : [required(at("statusReplicasPath"))]),
    ...(selector ? pathBelow(selector, ["spec", "status"], either, at("labelSelectorPath")) : []),
  ];
}

const columnTypes = ["boolean", "date", "integer", "number", "string"];
const columnFormats = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/**
 * One of additionalPrinterColumns. Errors about `jsonPath` name the field `JSONPath`, as in upstream's internal type.
 * Source: ValidateCustomResourceColumnDefinition
 */
export function validateColumn(column: CustomResourceColumnDefinition, path: string): FieldError[] {
  const { name, type, format, jsonPath: shown } = column;
  const typeText = `must be one of ${columnTypes.join(",")}`;
  const at = (field: string): string => child(path, field);
  return [
    ...need(name, at("name")),
    ...(!type ? [required(at("type"), typeText)] : columnTypes.includes(type) ? [] : [invalidValue(at("type"), type, typeText)]),
    ...(format && !columnFormats.includes(format)
      ? [invalidValue(at("format"), format, `must be one of ${columnFormats.join(",")}`)]
      : []),
    ...(shown ? simplePath(shown, at("JSONPath")) : [required(at("JSONPath"))]),
  ];
}
