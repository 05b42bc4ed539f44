import { type FieldError, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { GoText } from "@coxswain/apimachinery/objects/errors/go-syntax";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { IntOrString } from "@coxswain/apimachinery/objects/meta/int-or-string";
import { parsePercent } from "@coxswain/apimachinery/objects/meta/int-or-string";
import { nonNegative, percentProblems } from "../field-checks.ts";

/** A percentage, or a number that, despite the name, may be 0. Source: pkg/apis/apps/validation ValidatePositiveIntOrPercent */
export function positiveIntOrPercent(value: IntOrString | undefined, path: string): FieldError[] {
  if (typeof value === "string")
    return percentProblems(value).map((message) => invalidValue(path, goIntOrString(value), message));
  return nonNegative(value, path);
}

/** No errors for numbers and for malformed percentages, which `positiveIntOrPercent` reports. */
export function notAbove100Percent(value: IntOrString | undefined, path: string): FieldError[] {
  const percent = typeof value === "string" ? parsePercent(value) : undefined;
  return percent !== undefined && percent > 100
    ? [invalidValue(path, goIntOrString(value), "must not be greater than 100%")]
    : [];
}

/** The number, or the percentage as a number; 0 for an invalid percentage, which is reported separately. */
export function amount(value: IntOrString | undefined): number {
  if (typeof value !== "string") return value ?? 0;
  return percentProblems(value).length > 0 ? 0 : (parsePercent(value) ?? 0);
}

/** The value as the Go struct in upstream's error texts. */
export function goIntOrString(value: IntOrString | undefined): GoText {
  const [type, number, text] = typeof value === "string" ? [1, 0, value] : [0, value ?? 0, ""];
  return new GoText(`intstr.IntOrString{Type:${type}, IntVal:${number}, StrVal:${goQuote(text)}}`);
}
