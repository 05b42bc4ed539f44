/**
 * Number of changes of the pod template: a field of the spec before apps/v1, and an annotation maintained by the server since
 * then. Older clients and controllers match pods by it.
 * Source: pkg/registry/apps/daemonset/strategy.go, pkg/apis/apps/v1/conversion.go
 */

import { badRequest } from "@coxswain/apimachinery/objects/errors/status-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { DaemonSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";

const annotation = "deprecated.daemonset.template.generation";

/** Sets the annotation when it is missing. Upstream's conversion always does, so every writer owns it in managedFields. */
export function nameTemplateGeneration(daemonSet: DaemonSet): void {
  if (daemonSet.metadata.annotations?.[annotation] === undefined) setTemplateGeneration(daemonSet, 0n);
}

/** On create: keeps a value given by the client, at least 1. @throws BadRequest when it is not an integer */
export function startTemplateGeneration(next: DaemonSet): void {
  refuseOther(next);
  const given = templateGenerationOf(next);
  setTemplateGeneration(next, given < 1n ? 1n : given);
}

/** On update: increments the stored value when the template changed. @throws BadRequest when the client's is not an integer */
export function countTemplateGeneration(next: DaemonSet, current: DaemonSet): void {
  refuseOther(next);
  const changed = !semanticEqual(next.spec?.template, current.spec?.template);
  setTemplateGeneration(next, templateGenerationOf(current) + (changed ? 1n : 0n));
}

/** On updates of the status: restores the stored value. */
export function keepTemplateGeneration(next: DaemonSet, current: DaemonSet): void {
  setTemplateGeneration(next, templateGenerationOf(current));
}

/** Upstream parses the annotation during conversion, hence a decoding error. @throws BadRequest */
function refuseOther({ metadata }: DaemonSet): void {
  const value = metadata.annotations?.[annotation];
  if (value === undefined || int64Of(value) !== undefined) return;
  const fault = integer.test(value) ? "value out of range" : "invalid syntax";
  const text = `strconv.ParseInt: parsing ${goQuote(value)}: ${fault}`;
  throw badRequest(`DaemonSet in version "v1" cannot be handled as a DaemonSet: ${text}`);
}

const integer = /^[+-]?\d+$/;

/** @returns undefined for text that is no integer of 64 bits */
function int64Of(text: string): bigint | undefined {
  if (!integer.test(text)) return undefined;
  const value = BigInt(text);
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

function templateGenerationOf({ metadata }: DaemonSet): bigint {
  return int64Of(metadata.annotations?.[annotation] ?? "") ?? 0n;
}

function setTemplateGeneration({ metadata }: DaemonSet, value: bigint): void {
  metadata.annotations = { ...metadata.annotations, [annotation]: String(value) };
}
