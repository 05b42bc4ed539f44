import { isIP, isIPv4 } from "node:net";
import { parseCidr } from "@coxswain/apimachinery/objects/meta/ip";
import { parseDuration } from "@coxswain/apimachinery/objects/meta/time";

/**
 * Validates a string by a `format`; unknown formats accept everything. Dashes in format names are ignored. All patterns here
 * match in linear time.
 * Source: k8s.io/kube-openapi pkg/validation/strfmt, asaskevich/govalidator
 */
export function hasFormat(format: string, text: string): boolean {
  const check = formats.get(format.replaceAll("-", ""));
  return check === undefined || check(text);
}

/** Dashes in the name are ignored, as in `hasFormat`. */
export function isKnownFormat(format: string): boolean {
  return formats.has(format.replaceAll("-", ""));
}

const matches =
  (pattern: RegExp) =>
  (text: string): boolean =>
    pattern.test(text);

/** Matches a UUID. @param version, variant: first digit of the third and fourth group */
const uuid = (version: string, variant: string): ((text: string) => boolean) =>
  matches(new RegExp(`^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}[0-9a-f]{3}-?${variant}[0-9a-f]{3}-?[0-9a-f]{12}$`, "i"));
const colorPart = "\\s*(?:0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])\\s*";

const formats: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ["bsonobjectid", matches(/^[0-9a-f]{24}$/i)],
  ["byte", matches(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/)],
  ["cidr", (text) => parseCidr(text) !== undefined && isIP(text.slice(0, text.indexOf("/"))) !== 0],
  ["creditcard", isCreditCard],
  ["date", isDate],
  ["datetime", isDateTime],
  ["duration", isDuration],
  ["email", isEmail],
  ["hexcolor", matches(/^#?(?:[0-9a-f]{3}|[0-9a-f]{6})$/i)],
  ["hostname", isHostname],
  ["ipv4", (text) => isIPv4(text) || (isIP(text) === 6 && text.includes("."))],
  ["ipv6", (text) => isIP(text) === 6 && !text.includes("%")],
  ["isbn", (text) => isIsbn10(text) || isIsbn13(text)],
  ["isbn10", isIsbn10],
  ["isbn13", isIsbn13],
  ["mac", isMac],
  ["password", () => true],
  ["rgbcolor", matches(new RegExp(`^rgb\\(${colorPart},${colorPart},${colorPart}\\)$`))],
  ["ssn", matches(/^\d{3}[- ]?\d{2}[- ]?\d{4}$/)],
  ["uri", isRequestUri],
  ["uuid", uuid("[0-9a-f]", "[0-9a-f]")],
  ["uuid3", uuid("3", "[0-9a-f]")],
  ["uuid4", uuid("4", "[89ab]")],
  ["uuid5", uuid("5", "[89ab]")],
]);

/** Number ranges of the usual issuers, with a valid Luhn check digit. */
function isCreditCard(text: string): boolean {
  const digits = text.replace(/[^0-9]/g, "");
  const issued =
    /^(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|(?:222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11}|6[27]\d{14})$/;
  if (!issued.test(digits)) return false;
  const sum = [...digits].reverse().reduce((total, digit, i) => {
    const value = i % 2 === 0 ? Number(digit) : Number(digit) * 2;
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return sum % 10 === 0;
}

function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

function isDateTime(text: string): boolean {
  const [date = "", time = ""] = text.toLowerCase().split("t");
  const parts = /^(\d{2}):(\d{2}):(\d{2})(?:.\d+)?(?:z|[+-]\d{2}:\d{2})$/.exec(time);
  if (parts === null || !isDate(date)) return false;
  const [, hours = "", minutes = "", seconds = ""] = parts;
  return hours <= "23" && minutes <= "59" && seconds <= "59";
}

const timeUnit = /^(?:ns|nano.*|us|µs|micro.*|ms|milli.*|s|sec.*|m|min.*|h|hr|hour.*|d|day.*|w|wk|week.*)$/i;

/** A Go duration, or words: `3 weeks 2 days`. Of several units, one known unit is sufficient. */
function isDuration(text: string): boolean {
  if (parseDuration(text) !== undefined) return true;
  const part = /\s*\d+\s*([A-Za-zµ]+)\s*/y;
  let isKnown = false;
  while (part.lastIndex < text.length) {
    const match = part.exec(text);
    if (match === null) return false;
    isKnown ||= timeUnit.test(match[1]!);
  }
  return isKnown;
}

/** An address, or a display name followed by an address in angle brackets. Source: RFC 5322 as parsed by net/mail */
function isEmail(text: string): boolean {
  const open = text.endsWith(">") ? text.lastIndexOf("<") : -1;
  const address = (open < 0 ? text : text.slice(open + 1, -1)).trim();
  const at = address.lastIndexOf("@");
  const dotted = (part: string): boolean => part.split(".").every((atom) => /^[\w!#$%&'*+/=?^`{|}~\u0080-\uffff-]+$/.test(atom));
  const local = address.slice(0, at);
  const quoted = /^"(?:[^"\\\r\n]|\\.)+"$/.test(local);
  return at > 0 && (quoted || dotted(local)) && dotted(address.slice(at + 1));
}

/** RFC 1123 labels, with letters of any script; the last of several labels has at least two characters. */
function isHostname(text: string): boolean {
  const labels = text.split(".");
  const label = /^[a-zA-Z0-9\p{S}\p{L}](?:[a-zA-Z0-9\p{S}\p{L}-]*[a-zA-Z0-9\p{S}\p{L}])?$/u;
  const last = labels.at(-1)!;
  return (
    Buffer.byteLength(text) <= 255 &&
    labels.every((each) => label.test(each) && Buffer.byteLength(each) <= 63) &&
    (labels.length === 1 ? !last.includes("--") : /^[a-zA-Z\p{L}]{2,}$/u.test(last))
  );
}

function isIsbn10(text: string): boolean {
  const digits = text.replace(/[\s-]/g, "");
  if (!/^\d{9}[\dX]$/.test(digits)) return false;
  return [...digits].reduce((sum, digit, i) => sum + (i + 1) * (digit === "X" ? 10 : Number(digit)), 0) % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = text.replace(/[\s-]/g, "");
  return (
    /^\d{13}$/.test(digits) && [...digits].reduce((sum, digit, i) => sum + Number(digit) * (i % 2 === 0 ? 1 : 3), 0) % 10 === 0
  );
}

/** 6, 8 or 20 bytes: pairs of digits separated by colons or dashes, or groups of four separated by dots. */
function isMac(text: string): boolean {
  return [6, 8, 20].some((bytes) =>
    [
      `(?:[0-9a-f]{2}:){${bytes - 1}}[0-9a-f]{2}`,
      `(?:[0-9a-f]{2}-){${bytes - 1}}[0-9a-f]{2}`,
      `(?:[0-9a-f]{4}\\.){${bytes / 2 - 1}}[0-9a-f]{4}`,
    ].some((form) => new RegExp(`^${form}$`, "i").test(text)),
  );
}

/** An absolute path, or a URI with a scheme. */
function isRequestUri(text: string): boolean {
  const clean = !/[\u0000-\u001f\u007f]|%(?![0-9a-f]{2})/i.test(text);
  return clean && (text === "*" || text.startsWith("/") || /^[a-z][a-z0-9+.-]*:/i.test(text));
}
