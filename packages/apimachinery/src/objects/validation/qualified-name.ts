import { dns1123SubdomainProblems, maxLengthError, regexError } from "./dns.ts";

/**
 * Validation of label and annotation keys (`example.com/name`) and of label values.
 * Source: k8s.io/apimachinery pkg/util/validation/validation.go
 */
const name = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const nameForm = /^(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const nameText =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const valueText =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const longest = 63;
/** Most valid names and values, without length; matched first, as an object may have tens of thousands. */
const commonForm = /^[A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+)*$/;
const commonPrefixForm = /^[a-z0-9]+(?:[-.][a-z0-9]+)*$/;
/** Precomputed: a request may have many invalid names. */
const nameFault = regexError(nameText, name, "MyName", "my.name", "123-abc");
const valueFault = regexError(valueText, `(${name})?`, "MyValue", "my_value", "12345");

/** Validates `name` or `domain/name`. @returns upstream's error texts, none for a valid name */
export function qualifiedNameProblems(value: string): string[] {
  if (isCommonName(value)) return [];
  const parts = value.split("/");
  const errors: string[] = [];
  if (parts.length > 2) {
    return [`a qualified name ${nameFault} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`];
  }
  const last = parts.at(-1)!;
  if (parts.length === 2) {
    const prefix = parts[0]!;
    if (prefix === "") errors.push("prefix part must be non-empty");
    else errors.push(...dns1123SubdomainProblems(prefix).map((message) => `prefix part ${message}`));
  }
  if (last === "") errors.push("name part must be non-empty");
  else if (Buffer.byteLength(last) > longest) errors.push(`name part ${maxLengthError(longest)}`);
  if (!nameForm.test(last)) errors.push(`name part ${nameFault}`);
  return errors;
}

/** `""` is valid. */
export function labelValueProblems(value: string): string[] {
  if (value === "" || isCommon(value)) return [];
  const errors: string[] = [];
  if (Buffer.byteLength(value) > longest) errors.push(maxLengthError(longest));
  if (value !== "" && !nameForm.test(value)) errors.push(valueFault);
  return errors;
}

function isCommonName(value: string): boolean {
  const slash = value.indexOf("/");
  if (slash < 0) return isCommon(value);
  return slash <= longest && commonPrefixForm.test(value.slice(0, slash)) && isCommon(value.slice(slash + 1));
}

function isCommon(value: string): boolean {
  return value.length <= longest && commonForm.test(value);
}
