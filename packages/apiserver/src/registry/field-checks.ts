import { isIPv4 } from "node:net";
import {
  child,
  type FieldError,
  forbiddenField,
  index,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { canonicalIp, parseIp } from "@coxswain/apimachinery/objects/meta/ip";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { LabelSelector } from "@coxswain/apimachinery/objects/meta/types";
import {
  dns1035LabelProblems,
  dns1123LabelProblems,
  dns1123SubdomainProblems,
  wildcardDns1123SubdomainProblems,
} from "@coxswain/apimachinery/objects/validation/dns";
import {
  validatingAnnotations as checkingAnnotations,
  validatingLabels as checkingLabels,
  validateLabels as checkLabels,
  fieldImmutableText,
  isNegativeText,
} from "@coxswain/apimachinery/objects/validation/object-meta";
import { labelValueProblems, qualifiedNameProblems } from "@coxswain/apimachinery/objects/validation/qualified-name";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";

export {
  checkingAnnotations,
  checkingLabels,
  checkLabels,
  dns1035LabelProblems,
  dns1123LabelProblems,
  dns1123SubdomainProblems,
  fieldImmutableText,
  isNegativeText,
  labelValueProblems,
  qualifiedNameProblems,
  wildcardDns1123SubdomainProblems,
};

/**
 * Checks of single values, shared by the validation of many kinds. Functions with a path return field errors; the others
 * return error texts.
 * Source: k8s.io/apimachinery pkg/api/validation, pkg/util/validation
 */
/** @param shown makes the new value as quoted in the error, for objects and lists of named Go types */
export function immutableField(
  next: unknown,
  current: unknown,
  path: string,
  shown: () => unknown = () => next ?? null,
): FieldError[] {
  return semanticEqual(next, current) ? [] : [invalidValue(path, shown(), fieldImmutableText)];
}

export function nonNegative(value: number | bigint | undefined | null, path: string): FieldError[] {
  return value !== undefined && value !== null && value < 0 ? [invalidValue(path, value, isNegativeText)] : [];
}

export function dns1123Label(value: string, path: string): FieldError[] {
  return dns1123LabelProblems(value).map((message) => invalidValue(path, value, message));
}

export function dns1123Subdomain(value: string, path: string): FieldError[] {
  return dns1123SubdomainProblems(value).map((message) => invalidValue(path, value, message));
}

/** A label key: a name of at most 63 characters, optionally with a DNS prefix (`example.com/name`). */
export function qualifiedName(value: string, path: string): FieldError[] {
  return qualifiedNameProblems(value).map((message) => invalidValue(path, value, message));
}

/**
 * An absent selector is valid. Values of matchExpressions are not validated as label values.
 * Source: k8s.io/apimachinery pkg/apis/meta/v1/validation/validation.go
 */
export function checkLabelSelector(selector: LabelSelector | undefined | null, path: string): FieldError[] {
  return atOnce(checkingLabelSelector(selector, path));
}

/** Requirements that are checked between two yields. */
const checkedPerStep = 1024;

/** As `checkLabelSelector`, in steps. */
export function* checkingLabelSelector(selector: LabelSelector | undefined | null, path: string): Steps<FieldError[]> {
  if (!selector) return [];
  const errors = yield* checkingLabels(selector.matchLabels, child(path, "matchLabels"));
  for (const [i, { key, operator, values = [] }] of (selector.matchExpressions ?? []).entries()) {
    if (i % checkedPerStep === checkedPerStep - 1) yield;
    const at = index(child(path, "matchExpressions"), i);
    if (operator === "In" || operator === "NotIn") {
      if (!values?.length) errors.push(required(child(at, "values"), "must be specified when `operator` is 'In' or 'NotIn'"));
    } else if (operator === "Exists" || operator === "DoesNotExist") {
      if (values?.length)
        errors.push(forbiddenField(child(at, "values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    } else {
      errors.push(invalidValue(child(at, "operator"), operator ?? "", "not a valid selector operator"));
    }
    errors.push(...qualifiedName(key ?? "", child(at, "key")));
  }
  return errors;
}

/** Whether the selector matches everything; also when it is absent. */
export function isEmptySelector(selector: LabelSelector | undefined | null): boolean {
  return !selector || (Object.keys(selector.matchLabels ?? {}).length === 0 && (selector.matchExpressions ?? []).length === 0);
}

/** Required, and one of the valid values; the error lists them sorted. */
export function oneOf(value: string | undefined | null, valid: readonly string[], path: string): FieldError[] {
  if (!value) return [required(path)];
  return valid.includes(value) ? [] : [notSupported(path, value, [...valid].sort())];
}

/** @returns error texts; port 0 is invalid */
export function portProblems(port: number): string[] {
  return port >= 1 && port <= 65535 ? [] : ["must be between 1 and 65535, inclusive"];
}

/** A missing port counts as 0, which is invalid. */
export function checkPort(port: number | undefined, path: string): FieldError[] {
  return portProblems(port ?? 0).map((message) => invalidValue(path, port ?? 0, message));
}

/** IANA service names: `http`, `https-alt`. @returns error texts */
export function portNameProblems(name: string): string[] {
  const errors: string[] = [];
  if (Buffer.byteLength(name) > 15) errors.push("must be no more than 15 characters");
  if (!/^[-a-z0-9]+$/.test(name)) errors.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  if (!/[a-z]/.test(name)) errors.push("must contain at least one letter (a-z)");
  if (name.includes("--")) errors.push("must not contain consecutive hyphens");
  if (name !== "" && (name.startsWith("-") || name.endsWith("-"))) errors.push("must not begin or end with a hyphen");
  return errors;
}

/** A number, or an IANA service name (`portNameProblems`). A missing port counts as 0, which is invalid. */
export function checkPortNumOrName(port: number | string | undefined, path: string): FieldError[] {
  if (typeof port === "string") return portNameProblems(port).map((message) => invalidValue(path, port, message));
  return checkPort(port, path);
}

/** Whether it is an IPv4 address, also with leading zeros; IPv4-mapped IPv6 addresses are not. */
export function isIpv4Text(address: string): boolean {
  const parsed = parseIp(address);
  return parsed !== undefined && isIPv4(parsed);
}

const invalidIpText = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/** IPv4, also with leading zeros, or IPv6 without zone. @returns error texts */
export function ipProblems(address: string): string[] {
  return parseIp(address) === undefined ? [invalidIpText] : [];
}

/** Rejects unspecified, loopback and link-local addresses. Source: pkg/apis/core/validation ValidateNonSpecialIP */
export function checkNonSpecialIp(address: string, path: string): FieldError[] {
  const ip = parseIp(address);
  if (ip === undefined) return [invalidValue(path, address, "must be a valid IP address")];
  const plain = canonicalIp(ip);
  const errors: FieldError[] = [];
  if (plain === "0.0.0.0" || plain === "::") errors.push(invalidValue(path, address, `may not be unspecified (${address})`));
  if (/^127\./.test(plain) || plain === "::1")
    errors.push(invalidValue(path, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)"));
  if (/^169\.254\./.test(plain) || /^fe[89ab][0-9a-f]:/.test(plain)) {
    errors.push(invalidValue(path, address, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
  }
  if (/^224\.0\.0\./.test(plain) || /^ff[0-9a-f]2:/.test(plain)) {
    errors.push(invalidValue(path, address, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"));
  }
  return errors;
}

/** Names of environment variables. @returns error texts */
export function envVarNameProblems(name: string): string[] {
  const errors: string[] = [];
  if (!/^[-._a-zA-Z][-._a-zA-Z0-9]*$/.test(name)) {
    errors.push(
      "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')",
    );
  }
  return [...errors, ...leadingDotProblems(name)];
}

/** Names that are also file names. @returns error texts */
function leadingDotProblems(name: string): string[] {
  if (name === ".") return ["must not be '.'"];
  if (name === "..") return ["must not be '..'"];
  return name.startsWith("..") ? ["must not start with '..'"] : [];
}

/** Keys of ConfigMaps and Secrets. @returns error texts */
export function configMapKeyProblems(key: string): string[] {
  if (/^(?!\.)[-._a-zA-Z0-9]{1,253}$/.test(key)) return []; // fast path: there may be many keys
  const errors: string[] = [];
  if (Buffer.byteLength(key) > 253) errors.push("must be no more than 253 characters");
  if (!/^[-._a-zA-Z0-9]+$/.test(key)) {
    errors.push(
      "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    );
  }
  return [...errors, ...leadingDotProblems(key)];
}

/** Names of headers in probes. @returns error texts */
export function httpHeaderNameProblems(name: string): string[] {
  return /^[-A-Za-z0-9]+$/.test(name)
    ? []
    : [
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
      ];
}

/** Parses a quantity. The codec has validated it already; missing and invalid values are 0. */
export function quantityOf(text: unknown): Quantity {
  return Quantity.tryParse(String(text)) ?? Quantity.parse("0");
}

/** Percentages: `50%`. @returns error texts */
export function percentProblems(value: string): string[] {
  return /^[0-9]+%$/.test(value)
    ? []
    : [
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
      ];
}
