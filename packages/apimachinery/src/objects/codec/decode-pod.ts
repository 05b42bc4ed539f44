import type { Pod } from "../schema/kinds/core/v1.ts";
import { decodeParsed } from "./json.ts";

const podKind = { group: "", version: "v1", kind: "Pod" };

/** A Pod from a file, parsed; takes ownership of the value. @throws StatusError 400 when it is none */
export function decodePod(value: unknown): Pod {
  return decodeParsed(value, podKind).object as Pod; // cast: decoded as the kind Pod
}
