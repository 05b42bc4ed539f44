import { generateName } from "@coxswain/apimachinery/meta/names";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";

/** How often another name is tried when a generated one is taken. Source: KEP-4420 (upstream's 1.23 gave up at once) */
export const generatedNameAttempts = 8;

/** Names an object that has only `generateName`. @returns whether the name was made here. */
export function nameObject(object: KubeObject): boolean {
  const { metadata } = object;
  if (!metadata.generateName || metadata.name) return false;
  metadata.name = generateName(metadata.generateName);
  return true;
}
