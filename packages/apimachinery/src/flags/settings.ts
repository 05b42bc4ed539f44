import { resolve } from "node:path";
import { isJsonObject } from "../objects/meta/json-value.ts";
import { formatDuration, parseDuration } from "../objects/meta/time.ts";
import { decodeShape, type ObjectShape, type Shape } from "./config-shape.ts";
import type { FeatureGates } from "./feature-gates.ts";
import type { FlagTable } from "./flags.ts";
import { goDuration, nameOf } from "./rules.ts";
import type { Flag, SettingOptions } from "./types.ts";

/**
 * The settings of a program: a row for each value, by its name in the code, with the flag and the field of the configuration
 * file that set it, its type, default, limits and help. Flags, the file's fields, their merging, validation,
 * --help and docs/flags come from the rows.
 */
// biome-ignore lint/suspicious/noExplicitAny: a table holds settings of every type; each keeps its own in SettingValues.
export type Settings = Readonly<Record<string, Flag<any>>>;

/** Values by name; durations in milliseconds. */
export type SettingValues<T extends Settings> = {
  -readonly [Name in keyof T]: T[Name] extends Flag<infer Value> ? Value : never;
};

/** A decoded configuration file before defaults. */
export type Written = Readonly<Record<string, unknown>>;

/** The flags of settings, by the names that the user types, in alphabetical order. @throws Error for a flag declared twice */
export function flagsOf(settings: Settings): Readonly<Record<never, Flag<unknown>>> {
  const table: Record<string, Flag<unknown>> = {};
  for (const row of Object.values(settings).toSorted((a, b) => ((a.flag ?? "") < (b.flag ?? "") ? -1 : 1))) {
    if (row.flag === undefined) continue;
    if (table[row.flag] !== undefined) throw new Error(`flag --${row.flag} is declared twice`);
    table[row.flag] = row;
  }
  return table;
}

/**
 * The value of each setting: the flag if it was given, else the file's field, else the default.
 * @param flags values by flag name
 * @param set names of the flags that were given
 * @param file undefined when there is no configuration file
 */
export function settingValues<T extends Settings>(
  settings: T,
  from: {
    readonly flags: Readonly<Record<string, unknown>>;
    readonly set: ReadonlySet<string>;
    readonly file: Written | undefined;
  },
): SettingValues<T> {
  const { flags, set, file } = from;
  const chosen = (row: Flag<unknown>): unknown => {
    if (row.flag !== undefined && set.has(row.flag)) return flags[row.flag];
    const written = file === undefined || row.field === undefined ? undefined : fieldAt(file, row.field);
    const value = written === undefined || written === null ? undefined : decoded(row, written);
    return value ?? (file === undefined ? row.default : (row.fileDefault ?? row.default));
  };
  const entries = Object.entries<Flag<unknown>>(settings).map(([name, row]) => {
    const value = chosen(row);
    return [name, row.zeroIsDefault === "always" && isZero(value) ? row.default : value];
  });
  return Object.fromEntries(entries) as SettingValues<T>; // cast: each value was read by its row, or is the default of the row
}

/** The values of settings that only flags set. @param flags values by flag name */
export function valuesOfFlags<T extends Settings>(settings: T, flags: Readonly<Record<string, unknown>>): SettingValues<T> {
  return Object.fromEntries(
    Object.entries<Flag<unknown>>(settings).map(([name, { flag = "" }]) => [name, flags[flag]]),
  ) as SettingValues<T>; // cast: the flag that a row names reads values of the type of the row
}

const isZero = (value: unknown): boolean => value === 0 || value === "";

/** A duration becomes milliseconds. @returns undefined for a zero value that means the default */
function decoded(row: Flag<unknown>, written: unknown): unknown {
  const value = row.typeName === "duration" && typeof written === "string" ? parseDuration(written) : written;
  return row.zeroIsDefault !== undefined && isZero(value) ? undefined : value;
}

/** A row of another table of flags, as a setting. */
export const settingOf = <T extends FlagTable, Name extends keyof T & string>(
  table: T,
  flag: Name,
  options: Pick<SettingOptions<unknown>, "field" | "zeroIsDefault"> = {},
): T[Name] => ({ ...table[flag], ...options, flag });

/** The fields of a configuration file that has these values; durations in Go's format. */
export function fieldsOf<T extends Settings>(settings: T, values: SettingValues<T>): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const [name, { field, typeName }] of Object.entries<Flag<unknown>>(settings)) {
    if (field === undefined) continue;
    const path = field.split(".");
    const last = path.pop() ?? "";
    let object = fields;
    for (const part of path) {
      const inner = (object[part] ?? {}) as Record<string, unknown>; // cast: earlier turns of the loop have put maps there
      object[part] = inner;
      object = inner;
    }
    const value: unknown = values[name];
    object[last] = typeName === "duration" && typeof value === "number" ? formatDuration(value) : value;
  }
  return fields;
}

/** Value of a field in a configuration file, by its path. */
export function fieldAt(file: Written, path: string): unknown {
  let value: unknown = file;
  for (const part of path.split(".")) {
    if (!isJsonObject(value) || !Object.hasOwn(value, part)) return undefined;
    value = value[part];
  }
  return value;
}

/** Broken rules of one kind, in the order of the table. @param kind see rules.ts */
export function problemsOf<T extends Settings>(settings: T, values: SettingValues<T>, kind: string): string[] {
  return Object.entries<Flag<unknown>>(settings).flatMap(([name, row]) =>
    row.must?.kind === kind ? (row.must.problem(values[name], row) ?? []) : [],
  );
}

type Gates = Pick<FeatureGates, "enabled">;

/**
 * Settings that differ from their default although the feature gate that they need is off; that of a duration names its flag, too.
 * Source: pkg/kubelet/apis/config/validation/validation.go
 */
export function problemsOfGates<T extends Settings>(settings: T, values: SettingValues<T>, gates: Gates): string[] {
  return Object.entries<Flag<unknown>>(settings).flatMap(([name, row]) => {
    const { refusedWithout: gate, default: usual } = row;
    const value: unknown = values[name];
    if (gate === undefined || gates.enabled(gate) || value === usual) return [];
    const what = typeof value === "number" ? `${nameOf(row)} ${goDuration(value)}` : `${row.field} ${value}`;
    return [`${what} requires feature gate ${gate}`];
  });
}

/** Resolves relative paths in the file against `folder`. */
export function absolutePaths(settings: Settings, file: Written, folder: string): Written {
  const paths = Object.values(settings).flatMap(({ field, isPath }) => (isPath && field !== undefined ? [field] : []));
  return paths.reduce((fields, path) => withAbsolute(fields, path.split("."), folder), file);
}

function withAbsolute(fields: Written, [first = "", ...rest]: readonly string[], folder: string): Written {
  const value = Object.hasOwn(fields, first) ? fields[first] : undefined;
  if (rest.length > 0) return isJsonObject(value) ? { ...fields, [first]: withAbsolute(value, rest, folder) } : fields;
  return typeof value === "string" && value !== "" ? { ...fields, [first]: resolve(folder, value) } : fields;
}

/**
 * The fields of a configuration file.
 * @param goNames Go's type name of each object, by its path; `""` for the file itself
 */
export function fileShape(settings: Settings, goNames: Readonly<Record<string, string>>): ObjectShape {
  const shapes = Object.values(settings).flatMap((row): [string, Shape][] =>
    row.field === undefined ? [] : [[row.field, shapeOf(row)]],
  );
  return objectAt("", [["apiVersion", "string"], ["kind", "string"], ...shapes], goNames);
}

function objectAt(path: string, shapes: readonly [string, Shape][], goNames: Readonly<Record<string, string>>): ObjectShape {
  const goName = goNames[path];
  if (goName === undefined) throw new Error(`the object ${path} of the configuration file has no type name`);
  const fields: Record<string, Shape> = {};
  for (const [first, own] of Map.groupBy(shapes, ([name]) => name.split(".", 1)[0] ?? "")) {
    const [[name, shape] = ["", "any"] as const, ...others] = own;
    const inner = own.map(([each, type]): [string, Shape] => [each.slice(first.length + 1), type]);
    if (name === first && others.length > 0) throw new Error(`field ${name} is declared twice`);
    fields[first] = name === first ? shape : objectAt(path === "" ? first : `${path}.${first}`, inner, goNames);
  }
  return { goName, fields };
}

const shapes: Readonly<Record<string, Shape>> = {
  "": "bool",
  string: "string",
  ip: "string",
  int32: "int",
  int: "int64",
  float: "float64",
  duration: "duration",
  strings: ["string"],
  mapStringString: { mapOf: "string" },
  mapStringBool: { mapOf: "bool" },
};

function shapeOf({ shape, typeName, field }: Flag<unknown>): Shape {
  const found = shape ?? shapes[typeName];
  if (found === undefined) throw new Error(`the field ${field} needs a shape`);
  return found;
}

/**
 * Paths of fields that are not in the configuration file's type.
 * @throws DecodeError for a value of the wrong type
 */
export function unknownFields(shape: ObjectShape, file: Written): string[] {
  const unknown: string[] = [];
  decodeShape(file, shape, unknown);
  return unknown;
}

/** Top-level fields that were set although nothing reads them. */
export function ineffectiveFields(settings: Settings, file: Written): string[] {
  const unread = new Map(
    Object.values(settings).flatMap(({ field, wired, neutral }) =>
      field !== undefined && wired === false ? [[field, neutral]] : [],
    ),
  );
  return Object.keys(file).filter((name) => unread.has(name) && file[name] !== unread.get(name));
}
