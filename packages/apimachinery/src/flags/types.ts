import { isIP } from "node:net";
import { messageOf } from "../objects/errors/message.ts";
import { Quantity } from "../objects/meta/quantity.ts";
import { formatDuration, parseDuration } from "../objects/meta/time.ts";
import type { Shape } from "./config-shape.ts";
import { type GoInteger, parseGoInteger } from "./go-integer.ts";
import type { Rule } from "./rules.ts";

/** Options common to flags of all types. */
interface FlagOptions<T> {
  readonly help: string;
  readonly default?: T;
  /** Deprecation notice; shown in the help and printed when the flag is set. */
  readonly deprecated?: string;
  /** Accepted, but not shown by --help. */
  readonly hidden?: boolean;
  readonly shorthand?: string;
  /** @returns an error text; undefined for a valid value */
  readonly check?: (value: T) => string | undefined;
  /** False: parsed but not implemented yet; a value other than the default logs a warning at startup. */
  readonly wired?: boolean;
  /** Explains why the flag has no effect: it has none upstream either, or its behaviour is always on. */
  readonly idle?: string;
  /** Replaces the default in the help (a path that is only known at run time). */
  readonly defaultText?: string;
  /** Constraint on the value; checked after flags and configuration file were merged. */
  readonly must?: Rule<T>;
}

/** Options of a row of a table of settings, which has a configuration file's field beside the flag: see settings.ts. */
export interface SettingOptions<T> extends FlagOptions<T> {
  /** Name on the command line; undefined for what only the file sets. */
  readonly flag?: string;
  /** Path in the configuration file, `authentication.webhook.enabled`; undefined for what only a flag sets. */
  readonly field?: string;
  /** Type of the field, where it does not follow from the flag's type. */
  readonly shape?: Shape;
  /** Default when there is a configuration file, if it differs. */
  readonly fileDefault?: T;
  /** 0 and "" stand for the default: `always`, or in the file but not in a flag. */
  readonly zeroIsDefault?: "always" | "inFile";
  /** The field is a path, relative to the folder of the configuration file. */
  readonly isPath?: boolean;
  /** Values other than the default are refused while this feature gate is off. */
  readonly refusedWithout?: string;
  /** With `wired: false`: the value that describes the actual behavior, so that it needs no warning. */
  readonly neutral?: unknown;
}

/** Parsing and formatting of a flag. Source: github.com/spf13/pflag and component-base/cli/flag */
export interface Flag<T> extends SettingOptions<T> {
  readonly default: T;
  /** Type name in the help; empty for booleans. */
  readonly typeName: string;
  /** Value when the flag is given without `=value`; only for booleans. */
  readonly impliedText?: string;
  /**
   * @param before the value of an earlier occurrence on the command line, for repeatable flags
   * @throws Error with the problem; the caller prepends the flag and the text
   */
  parse(text: string, before: T | undefined): T;
  /** Text for the help and the log. */
  format(value: T): string;
}

function flag<T>(
  options: SettingOptions<T>,
  fallback: T,
  kind: Pick<Flag<T>, "typeName" | "parse" | "format" | "impliedText">,
): Flag<T> {
  return { ...options, default: options.default ?? fallback, ...kind };
}

/** Any text, as given; default empty. */
export const string = (options: SettingOptions<string>): Flag<string> =>
  flag(options, "", { typeName: "string", parse: (text) => text, format: (value) => value });

/** A comma-separated list; repeated flags append. */
export const stringSlice = (options: SettingOptions<readonly string[]>): Flag<readonly string[]> =>
  flag(options, [], {
    typeName: "strings",
    parse: (text, before = []) => [...before, ...(text === "" ? [] : splitCsv(text))],
    format: (value) => `[${value.join(",")}]`,
  });

/** Each occurrence is one element and may contain commas. */
const stringArray = (options: SettingOptions<readonly string[]>): Flag<readonly string[]> =>
  flag(options, [], {
    typeName: "stringArray",
    parse: (text, before = []) => [...before, text],
    format: (value) => `[${value.join(",")}]`,
  });

/** `cert,key[:domain patterns]`, repeatable; parsed by the `serving` module. */
export const namedCertKeys = (options: SettingOptions<readonly string[]>): Flag<readonly string[]> => ({
  ...stringArray(options),
  typeName: "namedCertKey",
});

/** `--x` and `--x=true`; other values as in Go's strconv.ParseBool. Default false. */
export const bool = (options: SettingOptions<boolean>): Flag<boolean> =>
  flag(options, false, { typeName: "", impliedText: "true", parse: parseBool, format: String });

/** A 64-bit integer with sign; hexadecimal (0x), octal (0) and binary (0b), too. Default 0. */
export const int = (options: SettingOptions<number>): Flag<number> =>
  flag(options, 0, integer("int", { signed: true, bits: 64, anyBase: true }));
/** Like `int`, with 32 bits. */
export const int32 = (options: SettingOptions<number>): Flag<number> =>
  flag(options, 0, integer("int32", { signed: true, bits: 32, anyBase: true }));
/** Like `int`, unsigned. */
export const uint = (options: SettingOptions<number>): Flag<number> =>
  flag(options, 0, integer("uint", { signed: false, bits: 64, anyBase: true }));

/** The type of -v, log verbosity. */
export const level = (options: SettingOptions<number>): Flag<number> =>
  flag(options, 0, integer("Level", { signed: true, bits: 32, anyBase: false }));

/** A decimal number, with an exponent or without; default 0. Not `inf` or `NaN`. */
export const float = (options: SettingOptions<number>): Flag<number> =>
  flag(options, 0, {
    typeName: "float",
    parse(text) {
      if (!/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text))
        throw new Error(`strconv.ParseFloat: parsing ${JSON.stringify(text)}: invalid syntax`);
      return Number(text);
    },
    format: String,
  });

/** Go's format, `1m30s`; the value is in milliseconds. */
export const duration = (options: Omit<SettingOptions<number>, "default"> & { readonly default?: string }): Flag<number> =>
  flag({ ...options, default: parseDuration(options.default ?? "0s") ?? 0 }, 0, {
    typeName: "duration",
    parse(text) {
      const ms = parseDuration(text);
      if (ms === undefined) throw new Error(`time: invalid duration ${JSON.stringify(text)}`);
      return ms;
    },
    format: (ms) => (ms === 0 ? "0s" : formatDuration(ms)),
  });

/** An IPv4 or IPv6 address, as text; default none (empty). */
export const ip = (options: SettingOptions<string>): Flag<string> =>
  flag(options, "", {
    typeName: "ip",
    parse(text) {
      if (isIP(text.trim()) === 0) throw new Error(`failed to parse IP: ${JSON.stringify(text)}`);
      return text.trim();
    },
    format: (value) => value || "<nil>",
  });

/** `a=b,c=d`; repeated flags add. With `bareKeys`, a key without a value maps to the empty string. */
export const mapStringString = (
  options: SettingOptions<Readonly<Record<string, string>>> & { readonly separator?: string; readonly bareKeys?: boolean },
): Flag<Readonly<Record<string, string>>> =>
  flag(
    options,
    {},
    {
      typeName: "mapStringString",
      parse: (text, before = {}) =>
        fromPairs(before, pairsOf(text), options.separator ?? "=", (value) => {
          if (value === undefined && !options.bareKeys)
            throw new Error(`malformed pair, expect string${options.separator ?? "="}string`);
          return value ?? "";
        }),
      format: (value) =>
        Object.entries(value)
          .map(([key, each]) => `${key}${options.separator ?? "="}${each}`)
          .sort()
          .join(","),
    },
  );

/**
 * `key=value`, where key and value may contain commas; several pairs are a CSV line: `"a,b=c,d","e=f"`. Repeated flags add.
 * Source: github.com/spf13/pflag string_to_string.go
 */
export const stringToString = (
  options: SettingOptions<Readonly<Record<string, string>>>,
): Flag<Readonly<Record<string, string>>> =>
  flag(
    options,
    {},
    {
      typeName: "stringToString",
      parse(text, before = {}) {
        const pairs = text.split("=").length === 2 ? [text.replace(/^"+|"+$/g, "")] : splitCsv(text);
        return fromPairs(before, pairs, "=", (value, pair) => {
          if (value === undefined) throw new Error(`${pair} must be formatted as key=value`);
          return value;
        });
      },
      format: (value) =>
        `[${Object.entries(value)
          .map((pair) => pair.join("="))
          .join(",")}]`,
    },
  );

/** `a=true,b=false`; repeated flags add. */
export const mapStringBool = (
  options: SettingOptions<Readonly<Record<string, boolean>>>,
): Flag<Readonly<Record<string, boolean>>> =>
  flag(
    options,
    {},
    {
      typeName: "mapStringBool",
      parse: (text, before = {}) => fromPairs(before, pairsOf(text), "=", parseBoolOf),
      format: (value) =>
        Object.entries(value)
          .map(([key, each]) => `${key}=${each}`)
          .sort()
          .join(","),
    },
  );

/** `--manifest-url-header=a:b,c:d`: a multimap of names to values. */
export const multiMap = (
  options: SettingOptions<readonly (readonly [string, string])[]>,
): Flag<readonly (readonly [string, string])[]> =>
  flag(options, [], {
    typeName: "colonSeparatedMultimapStringString",
    parse: (text, before = []) => [
      ...before,
      ...pairsOf(text).map((pair): [string, string] => {
        const colon = pair.indexOf(":");
        if (colon < 0) throw new Error(`malformed pair, expect string:string`);
        return [pair.slice(0, colon).trim(), pair.slice(colon + 1).trim()];
      }),
    ],
    format: (value) => value.map((pair) => pair.join(":")).join(","),
  });

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** `30000-32767`, `30000+2767` or a single port. */
export const portRange = (options: Omit<SettingOptions<PortRange>, "default"> & { readonly default?: string }): Flag<PortRange> =>
  flag(
    { ...options, default: parsePortRange(options.default ?? "0") },
    { first: 0, last: 0 },
    {
      typeName: "portRange",
      parse: parsePortRange,
      format: ({ first, last }) => `${first}-${last}`,
    },
  );

/** A resource quantity (`1Gi`), as text; default 0. */
export const quantity = (options: SettingOptions<string>): Flag<string> =>
  flag(options, "0", {
    typeName: "quantity",
    parse(text) {
      if (Quantity.tryParse(text) === undefined)
        throw new Error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
      return text;
    },
    format: (value) => value,
  });

/** A string that another module parses; the help shows `typeName`. */
export const text = (typeName: string, options: SettingOptions<string>): Flag<string> => ({ ...string(options), typeName });

function integer(typeName: string, kind: GoInteger): Pick<Flag<number>, "typeName" | "parse" | "format"> {
  return { typeName, parse: (written) => parseGoInteger(written, kind), format: String };
}

/** Go's strconv.ParseBool. @throws Error with Go's text */
export function parseBool(written: string): boolean {
  if (["1", "t", "T", "TRUE", "true", "True"].includes(written)) return true;
  if (["0", "f", "F", "FALSE", "false", "False"].includes(written)) return false;
  throw new Error(`strconv.ParseBool: parsing ${JSON.stringify(written)}: invalid syntax`);
}

function parseBoolOf(written: string | undefined, key: string): boolean {
  if (written === undefined) throw new Error(`missing bool value for ${key}`);
  try {
    return parseBool(written);
  } catch (err) {
    throw new Error(`invalid value of ${key}=${written}, err: ${messageOf(err)}`);
  }
}

/** The pairs of a comma-separated list. Empty ones, as behind a last comma, are left out. */
const pairsOf = (text: string): string[] => text.split(",").filter((pair) => pair !== "");

/** @param read converts a value; undefined for a pair without separator */
function fromPairs<T>(
  before: Readonly<Record<string, T>>,
  pairs: readonly string[],
  separator: string,
  read: (value: string | undefined, key: string) => T,
): Record<string, T> {
  const entries = pairs.map((pair): [string, T] => {
    const at = pair.indexOf(separator);
    const key = (at < 0 ? pair : pair.slice(0, at)).trim();
    return [key, read(at < 0 ? undefined : pair.slice(at + separator.length).trim(), key)];
  });
  return Object.fromEntries([...Object.entries(before), ...entries]);
}

function parsePortRange(written: string): PortRange {
  const range = /^\s*(\d{1,5})(?:\s*([-+])\s*(\d{1,5}))?\s*$/.exec(written);
  if (range === null) throw new Error(`unable to parse port range: ${written}`);
  const first = Number(range[1]);
  const last = range[2] === undefined ? first : range[2] === "+" ? first + Number(range[3]) : Number(range[3]);
  if (last > 65_535) throw new Error(`the port range cannot be greater than 65535: ${written}`);
  if (last < first) throw new Error(`end port cannot be less than start port: ${written}`);
  return { first, last };
}

/** Splits a CSV line; values may be quoted. */
function splitCsv(line: string): string[] {
  const values: string[] = [];
  const pattern = /(?:^|,)(?:"((?:[^"]|"")*)"(?=,|$)|([^,]*))/g;
  for (const match of line.matchAll(pattern)) values.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? "");
  return values;
}

/** A setting that only a configuration file can have: an object or a list of objects. */
export const structure = <T>(
  options: SettingOptions<T> & { readonly field: string; readonly shape: Shape; readonly default: T },
): Flag<T> =>
  flag(options, options.default, {
    typeName: "object",
    parse() {
      throw new Error(`${options.field} is no flag`);
    },
    format: (value) => JSON.stringify(value),
  });
