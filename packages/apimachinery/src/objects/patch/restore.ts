/**
 * Type check of the result of a strategic merge. Upstream converts it to an object by reflection instead of its JSON
 * decoder, so that error texts differ.
 * Source: k8s.io/apimachinery pkg/runtime/converter.go
 */
import { Pace, type Steps } from "../../process/event-loop/steps.ts";
import { DecodeFailure, decodeScalar } from "../codec/json-decode.ts";
import { valuesPerStep } from "../meta/deep-equal.ts";
import type { FieldType, ScalarKind } from "../schema/descriptor.ts";
import { goKind } from "./go-text.ts";

/** @throws Error for the first value of a wrong type, e.g. `cannot restore slice from bool` */
export function* checkingRestorable(value: unknown, type: FieldType, pace = new Pace(valuesPerStep)): Steps<void> {
  if (value === null || value === undefined) return;
  const from = goKind(value);
  switch (type.kind) {
    case "struct":
      if (from !== "map") throw new Error(`cannot restore struct from: ${from}`);
      for (const field of type.struct.fields) {
        if (Object.hasOwn(value, field.name)) {
          yield* checkingRestorable((value as Record<string, unknown>)[field.name], field.type, pace); // cast: `goKind` has found a map
        }
      }
      return;
    case "list":
      if (from !== "slice") throw new Error(`cannot restore slice from ${from}`);
      yield* checkingAll(value as unknown[], type.element, pace); // cast: `goKind` has found a slice
      return;
    case "map": {
      if (from !== "map") throw new Error(`cannot restore map from ${from}`);
      const elements = Object.values(value);
      if (elements.length > valuesPerStep) yield;
      yield* checkingAll(elements, type.value, pace);
      return;
    }
    default:
      checkScalar(value, type.kind, type.goType);
  }
}

function* checkingAll(elements: readonly unknown[], type: FieldType, pace: Pace): Steps<void> {
  const isContainer = type.kind === "struct" || type.kind === "list" || type.kind === "map";
  for (const element of elements) {
    if (isContainer) yield* checkingRestorable(element, type, pace);
    else if (element !== null && element !== undefined) checkScalar(element, type.kind, type.goType);
    if (pace.isDue()) yield;
  }
}

/** Conversions that Go's reflection allows but upstream's converter rejects, with a different text. */
const convertible: Partial<Record<ScalarKind, readonly string[]>> = {
  string: ["int64"],
  int32: ["float64"],
  int64: ["float64"],
};
const fitting: Partial<Record<ScalarKind, readonly string[]>> = {
  string: ["string"],
  bool: ["bool"],
  int32: ["int64"],
  int64: ["int64"],
  float64: ["int64", "float64"],
};

function checkScalar(value: unknown, kind: ScalarKind, goType: string): void {
  const from = goKind(value);
  const fits = fitting[kind];
  if (fits === undefined) {
    checkByJson(value, kind, goType);
    return;
  }
  // Upstream truncates integers that overflow; they are rejected here.
  const tooLarge = kind === "int32" && from === "int64" && (Number(value) | 0) !== Number(value);
  if (fits.includes(from) && !tooLarge) return;
  if (tooLarge || convertible[kind]?.includes(from)) throw new Error(`cannot convert ${from} to ${goType}`);
  throw new Error(`unrecognized type: ${kind}`);
}

/** Types with a custom UnmarshalJSON, and bytes. */
function checkByJson(value: unknown, kind: ScalarKind, goType: string): void {
  const from = goKind(value);
  if (kind === "bytes" && from !== "string" && from !== "slice") throw new Error(`cannot restore slice from ${from}`);
  try {
    decodeScalar(value, kind, goType);
  } catch (err) {
    if (!(err instanceof DecodeFailure)) throw err;
    throw kind === "bytes" ? new Error(`error decoding from json: ${err.message}`) : err;
  }
}
