import { jsonWord } from "@coxswain/apimachinery/meta/json-value";
import { parseDuration } from "@coxswain/apimachinery/meta/time";

/** What a field of the configuration file may hold: a scalar, a list of one shape, an object with these fields. */
export type Shape = "string" | "bool" | "int" | "float" | "duration" | "any" | readonly [Shape] | ObjectShape;
export interface ObjectShape {
  /** As Go calls it in error texts. */
  readonly goName: string;
  readonly fields: Readonly<Record<string, Shape>>;
}

/** A field's value cannot be what it is written as. */
export class DecodeError extends Error {}

/**
 * Reads what was written by its shape: durations become milliseconds, null is as if absent.
 * @param unknown collects the paths of fields that do not exist, `profiles[0].plugin`
 * @throws DecodeError with Go's text for a value of the wrong type
 */
export function decodeShape(value: unknown, shape: Shape, unknown: string[], path = "", within = ""): unknown {
  if (value === null || value === undefined) return undefined;
  if (isList(shape)) {
    if (!Array.isArray(value)) throw mismatch(value, within, "[]");
    return value.map((each, i) => decodeShape(each, shape[0], unknown, `${path}[${i}]`, within));
  }
  if (typeof shape === "object") return decodeObject(value, shape, unknown, path, within);
  return decodeScalar(value, shape, within);
}

const isList = (shape: Shape): shape is readonly [Shape] => Array.isArray(shape);

function decodeObject(value: unknown, { goName, fields }: ObjectShape, unknown: string[], path: string, within: string): object {
  if (typeof value !== "object" || Array.isArray(value)) throw mismatch(value, within, goName);
  const decoded: Record<string, unknown> = {};
  for (const [name, each] of Object.entries(value as object)) {
    const place = path === "" ? name : `${path}.${name}`;
    const shape = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (shape === undefined) unknown.push(place);
    else {
      const read = decodeShape(each, shape, unknown, place, `${goName}.${place}`);
      if (read !== undefined) decoded[name] = read;
    }
  }
  return decoded;
}

function decodeScalar(value: unknown, shape: string, within: string): unknown {
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
      if (typeof value === "number" && Number.isInteger(value)) return value;
      break;
    case "float":
      if (typeof value === "number") return value;
      break;
    case "duration": {
      if (typeof value !== "string") break;
      const ms = parseDuration(value);
      if (ms === undefined) throw new DecodeError(`time: invalid duration ${JSON.stringify(value)}`);
      return ms;
    }
  }
  throw mismatch(value, within, goTypes[shape] ?? shape);
}

const goTypes: Readonly<Record<string, string>> = { int: "int32", float: "float32", duration: "string" };

function mismatch(value: unknown, within: string, type: string): DecodeError {
  return new DecodeError(`json: cannot unmarshal ${jsonWord(value)} into Go struct field ${within} of type ${type}`);
}
