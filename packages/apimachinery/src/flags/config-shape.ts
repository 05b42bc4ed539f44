import { isJsonObject, jsonWord } from "../objects/meta/json-value.ts";
import { parseDuration } from "../objects/meta/time.ts";

type Scalar = "string" | "bool" | "int" | "int64" | "float" | "float64" | "duration";

/** Type of a configuration field: a scalar, a list, a map or an object. */
export type Shape = Scalar | "any" | readonly [Shape] | MapShape | ObjectShape;
interface MapShape {
  readonly mapOf: Shape;
}
export interface ObjectShape {
  /** Go's type name, for error texts. */
  readonly goName: string;
  readonly fields: Readonly<Record<string, Shape>>;
}

/** A field has a value of the wrong type. */
export class DecodeError extends Error {}

/**
 * Decodes a value by its shape: durations become milliseconds, null counts as absent.
 * @param unknown collects the paths of unknown fields, `profiles[0].plugin`
 * @throws DecodeError with Go's text for a value of the wrong type
 */
export function decodeShape(value: unknown, shape: Shape, unknown: string[], path = "", within = ""): unknown {
  if (value === null || value === undefined) return undefined;
  if (isList(shape)) {
    if (!Array.isArray(value)) throw mismatch(value, within, shape);
    return value.map((each, i) => decodeShape(each, shape[0], unknown, `${path}[${i}]`, within));
  }
  if (isMap(shape)) {
    if (!isJsonObject(value)) throw mismatch(value, within, shape);
    const { mapOf } = shape;
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [key, decodeShape(each, mapOf, unknown, `${path}.${key}`, within)]),
    );
  }
  if (typeof shape === "object") return decodeObject(value, shape, unknown, path, within);
  return decodeScalar(value, shape, within);
}

const isList = (shape: Shape): shape is readonly [Shape] => Array.isArray(shape);
const isMap = (shape: Shape): shape is MapShape => typeof shape === "object" && "mapOf" in shape;

function decodeObject(value: unknown, shape: ObjectShape, unknown: string[], path: string, within: string): object {
  if (!isJsonObject(value)) throw mismatch(value, within, shape);
  const { goName, fields } = shape;
  const decoded: Record<string, unknown> = {};
  // Go's texts name fields without the indexes and keys on the way to them.
  const above = within === "" ? "" : `${within.slice(within.indexOf(".") + 1)}.`;
  for (const [name, each] of Object.entries(value)) {
    const place = path === "" ? name : `${path}.${name}`;
    const own = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (own === undefined) unknown.push(place);
    else {
      const read = decodeShape(each, own, unknown, place, `${goName}.${above}${name}`);
      if (read !== undefined) decoded[name] = read;
    }
  }
  return decoded;
}

function decodeScalar(value: unknown, shape: Scalar | "any", within: string): unknown {
  switch (shape) {
    case "any":
      return value;
    case "string":
      if (typeof value === "string") return value;
      break;
    case "bool":
      if (typeof value === "boolean") return value;
      break;
    case "int":
    case "int64":
      if (typeof value !== "number") break;
      if (Number.isInteger(value) && (shape === "int64" || (value | 0) === value)) return value;
      throw new DecodeError(`json: cannot unmarshal number ${value} into Go struct field ${within} of type ${goType(shape)}`);
    case "float":
    case "float64":
      if (typeof value === "number") return value;
      break;
    case "duration": {
      if (typeof value !== "string") break;
      const ms = parseDuration(value);
      if (ms === undefined) throw new DecodeError(`time: invalid duration ${JSON.stringify(value)}`);
      return ms;
    }
  }
  throw mismatch(value, within, shape);
}

const goTypes: Readonly<Record<string, string>> = { int: "int32", float: "float32", duration: "string" };

function goType(shape: Shape): string {
  if (typeof shape === "string") return goTypes[shape] ?? shape;
  if (isList(shape)) return `[]${goType(shape[0])}`;
  return isMap(shape) ? `map[string]${goType(shape.mapOf)}` : shape.goName;
}

function mismatch(value: unknown, within: string, shape: Shape): DecodeError {
  return new DecodeError(`json: cannot unmarshal ${jsonWord(value)} into Go struct field ${within} of type ${goType(shape)}`);
}
