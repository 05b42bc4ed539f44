import { generateName } from "@coxswain/apimachinery/meta/names";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";

/** Upper bound of creates tried with generated names. Source: KEP-4420 (upstream 1.23 does not retry) */
export const generatedNameAttempts = 8;

/** Sets `metadata.name` of an object that has only `generateName`. @returns true when it generated a name */
export function nameObject(object: KubeObject): boolean {
  const { metadata } = object;
  if (!metadata.generateName || metadata.name) return false;
  metadata.name = generateName(metadata.generateName);
  return true;
}
