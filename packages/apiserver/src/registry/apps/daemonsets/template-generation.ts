/**
 * How often the pod template changed: a field of the spec before apps/v1, since then an annotation that every DaemonSet
 * has and nobody sets. Node agents and controllers of old find their pods by it.
 * Source: pkg/registry/apps/daemonset/strategy.go, pkg/apis/apps/v1/conversion.go
 */

import { badRequest } from "@coxswain/apimachinery/errors/status-error";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import type { DaemonSet } from "@coxswain/apimachinery/schema/kinds/apps/v1";

const annotation = "deprecated.daemonset.template.generation";

/** Every writer has the annotation, also in `managedFields`: conversion upstream knows no DaemonSet without it. */
export function nameTemplateGeneration(daemonSet: DaemonSet): void {
  if (daemonSet.metadata.annotations?.[annotation] === undefined) setTemplateGeneration(daemonSet, 0);
}

/** What a client gives counts on from there. */
export function startTemplateGeneration(next: DaemonSet): void {
  refuseOther(next);
  setTemplateGeneration(next, Math.max(1, templateGenerationOf(next)));
}

/** One more when the template is another. */
export function countTemplateGeneration(next: DaemonSet, current: DaemonSet): void {
  refuseOther(next);
  const changed = !semanticEqual(next.spec?.template, current.spec?.template);
  setTemplateGeneration(next, templateGenerationOf(current) + (changed ? 1 : 0));
}

export function keepTemplateGeneration(next: DaemonSet, current: DaemonSet): void {
  setTemplateGeneration(next, templateGenerationOf(current));
}

/** Upstream reads it as it converts the object. @throws BadRequest */
function refuseOther({ metadata }: DaemonSet): void {
  const value = metadata.annotations?.[annotation];
  if (value === undefined || /^[+-]?\d{1,18}$/.test(value)) return;
  const fault = /^[+-]?\d+$/.test(value) ? "value out of range" : "invalid syntax";
  const text = `strconv.ParseInt: parsing ${goQuote(value)}: ${fault}`;
  throw badRequest(`DaemonSet in version "v1" cannot be handled as a DaemonSet: ${text}`);
}

function templateGenerationOf({ metadata }: DaemonSet): number {
  const value = Number(metadata.annotations?.[annotation]);
  return Number.isSafeInteger(value) ? value : 0;
}

function setTemplateGeneration({ metadata }: DaemonSet, value: number): void {
  metadata.annotations = { ...metadata.annotations, [annotation]: String(value) };
}
