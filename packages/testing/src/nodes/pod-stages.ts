import type { Pod, PodStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { type Duration, durationMs } from "../time/duration.ts";

/**
 * A step in the life cycle of a Pod, modelled on kwok's Stage: when the selector matches, `next` is applied after the delay. The first
 * matching stage is taken. Where kwok has templates, this has data or functions.
 */
export interface PodStage {
  readonly name: string;
  readonly selector?: StageSelector;
  /** Default: none. */
  readonly delay?: Duration;
  readonly next: StageOutcome;
}

export interface StageSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchAnnotations?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly StageExpression[];
}

export interface StageExpression {
  /** `.status.phase`, `.metadata.ownerReferences.[].kind` */
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
  readonly values?: readonly string[];
}

export interface StageOutcome {
  /** Applied to the status as a strategic merge patch. Times of conditions and Pod IPs are filled in unless given. */
  readonly status?: Partial<PodStatus> | ((pod: Pod, at: StageMoment) => Partial<PodStatus>);
  readonly finalizers?: { readonly add?: readonly string[]; readonly remove?: readonly string[]; readonly empty?: boolean };
  readonly event?: { readonly type: "Normal" | "Warning"; readonly reason: string; readonly message: string };
  readonly delete?: boolean;
}

export interface StageMoment {
  /** RFC 3339. */
  readonly now: string;
  readonly hostIP: string;
  readonly podIP: string;
}

/** @throws Error that names the stage */
export function checkStages(stages: readonly PodStage[]): void {
  for (const { name, delay = 0, selector = {}, next } of stages) {
    const refuse = (what: string): never => {
      throw new Error(`stage ${JSON.stringify(name)}: ${what}`);
    };
    try {
      durationMs(delay);
    } catch (err) {
      refuse((err as Error).message);
    }
    if (next === undefined || Object.keys(next).length === 0) refuse("next: nothing happens");
    if (typeof (next as { statusTemplate?: unknown }).statusTemplate === "string")
      refuse("next.statusTemplate: give `status` as data");
    for (const { key, operator, values } of selector.matchExpressions ?? []) {
      if (!key.startsWith(".")) refuse(`${JSON.stringify(key)} does not begin with a dot`);
      if (!["In", "NotIn", "Exists", "DoesNotExist"].includes(operator)) refuse(`${JSON.stringify(operator)} is no operator`);
      if (/In$/.test(operator) && !values?.length) refuse(`${operator} needs values`);
    }
  }
}

/** The next stage of a Pod; undefined: its state does not change. */
export function stageOf(pod: Pod, stages: readonly PodStage[]): PodStage | undefined {
  return stages.find(({ selector = {} }) => {
    const { matchLabels = {}, matchAnnotations = {}, matchExpressions = [] } = selector;
    return (
      holds(matchLabels, pod.metadata.labels) &&
      holds(matchAnnotations, pod.metadata.annotations) &&
      matchExpressions.every((expression) => isTrue(pod, expression))
    );
  });
}

/** True when `own` has every wanted key with its value. */
export const holds = (wanted: Readonly<Record<string, string>>, own: Readonly<Record<string, string>> = {}): boolean =>
  Object.entries(wanted).every(([key, value]) => own[key] === value);

function isTrue(pod: Pod, { key, operator, values = [] }: StageExpression): boolean {
  const found = valuesAt(pod, key);
  const isOne = found.some((value) => values.includes(String(value)));
  switch (operator) {
    case "In":
      return isOne;
    case "NotIn":
      return !isOne;
    case "Exists":
      return found.length > 0;
    case "DoesNotExist":
      return found.length === 0;
  }
}

/** Nulls, empty strings and empty lists count as absent, like zero values of API types. */
function valuesAt(pod: Pod, key: string): readonly unknown[] {
  let values: readonly unknown[] = [pod];
  for (const part of key.split(".").slice(1)) {
    values =
      part === "[]"
        ? values.flatMap((value) => (Array.isArray(value) ? value : []))
        : values.map((value) => fieldOf(value, part));
    values = values.filter(
      (value) => value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0),
    );
  }
  return values;
}

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
