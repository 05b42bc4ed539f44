import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { invalidValue, required } from "@coxswain/apimachinery/errors/field-error";
import { child } from "@coxswain/apimachinery/errors/field-path";
import type {
  CustomResourceColumnDefinition,
  CustomResourceDefinitionVersion,
  CustomResourceSubresourceScale,
} from "@coxswain/apimachinery/schema/kinds/apiextensions/v1";
import { each, need, optionalOneOf, requiredOneOf, saying } from "../../rules.ts";

/** What a version has besides its schema. Source: validateCustomResourceDefinitionVersion */
export function validateVersion(version: CustomResourceDefinitionVersion, path: string): FieldError[] {
  const { deprecated = false, deprecationWarning: warning, subresources } = version;
  const scale = subresources?.scale;
  return [
    ...saying(warningFaults(deprecated, warning), warning, child(path, "deprecationWarning")),
    ...(scale ? validateScale(scale, child(path, "subresources", "scale")) : []),
    ...each(version.additionalPrinterColumns, child(path, "additionalPrinterColumns"), validateColumn),
  ];
}

const longestWarning = 256;

function warningFaults(deprecated: boolean, warning: string | undefined): string[] {
  if (warning === undefined || warning === null) return [];
  const faults = deprecated ? [] : ["can only be set for deprecated versions"];
  if (warning.length > longestWarning) faults.push(`must be <= ${longestWarning} characters long`);
  if (warning === "") faults.push("must not be an empty string");
  const at = warning.search(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u);
  if (at >= 0) faults.push(`must only contain printable UTF-8 characters; non-printable character found at index ${at}`);
  return faults;
}

/** `.spec.replicas`: which part of the object, and a plain path. */
function jsonPath(value: string | undefined, below: readonly string[], text: string, path: string): FieldError[] {
  if (value === undefined) return [];
  if (!value.startsWith(".")) return [invalidValue(path, value, "must be a simple json path starting with .")];
  if (/[[\]{}'"*?()@]/.test(value) || value.endsWith(".") || value.includes(".."))
    return [invalidValue(path, value, "is an invalid path: must be a simple json path")];
  return below.some((part) => value.startsWith(`.${part}.`)) ? [] : [invalidValue(path, value, text)];
}

function validateScale(scale: CustomResourceSubresourceScale, path: string): FieldError[] {
  const { specReplicasPath: wanted, statusReplicasPath: present, labelSelectorPath: selector } = scale;
  const [wantedPath, presentPath] = [child(path, "specReplicasPath"), child(path, "statusReplicasPath")];
  return [
    ...need(wanted, wantedPath),
    ...jsonPath(wanted || undefined, ["spec"], "should be a json path under .spec", wantedPath),
    ...need(present, presentPath),
    ...jsonPath(present || undefined, ["status"], "should be a json path under .status", presentPath),
    ...jsonPath(
      selector || undefined,
      ["spec", "status"],
      "should be a json path under either .status or .spec",
      child(path, "labelSelectorPath"),
    ),
  ];
}

const columnTypes = ["boolean", "date", "integer", "number", "string"];
const columnFormats = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/** Source: ValidateCustomResourceColumnDefinition */
function validateColumn(column: CustomResourceColumnDefinition, path: string): FieldError[] {
  const { name, type, format, jsonPath: shown } = column;
  return [
    ...need(name, child(path, "name")),
    ...requiredOneOf(type, columnTypes, child(path, "type")),
    ...(format ? optionalOneOf(format, columnFormats, child(path, "format")) : []),
    ...(shown ? [] : [required(child(path, "jsonPath"))]),
    ...(shown && !shown.startsWith(".")
      ? [invalidValue(child(path, "jsonPath"), shown, "must be a simple json path starting with .")]
      : []),
  ];
}
