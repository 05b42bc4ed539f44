/** Input and result of a rule. Rules are pure; the kind's `gather` reads their input. */

import type { Decision, ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Event } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { Finding } from "./explanation.ts";

/**
 * The result of reading an object; "missing": it does not exist; "hidden": the user may not read it, or the explanation has used up its
 * reads.
 */
export type Look<T> = T | "missing" | "hidden";

/** Type guard: the object was read, so that it is neither missing nor hidden. */
export const isSeen = <T>(look: Look<T>): look is T => look !== "missing" && look !== "hidden";

/** Reads for one explanation, with the permissions of the user. */
export interface Reader {
  /** In ms since the epoch. */
  readonly now: number;
  /** @param group `""` for the core group */
  get<T extends KubeObject>(resource: string, group: string, namespace: string, name: string): Promise<Look<T>>;
  /**
   * Objects of a namespace (`""`: of all), at most a few hundred.
   * @returns undefined when the user may not list them
   */
  list<T extends KubeObject>(
    resource: string,
    group: string,
    namespace: string,
    selector?: LabelSelector,
  ): Promise<readonly T[] | undefined>;
  /** The resource that stores objects of this kind; undefined when none is served. */
  resourceOf(apiVersion: string, kind: string): { readonly resource: string; readonly group: string } | undefined;
  /** All stored resources that are namespaced. */
  namespacedResources(): readonly { readonly resource: string; readonly group: string }[];
  refOf(object: KubeObject, resource: string, group: string): ObjectRef;
}

export interface Facts<T, R> {
  readonly object: T;
  readonly now: number;
  /** Events about the object, the latest first. */
  readonly events: readonly Event[];
  readonly decisions: readonly Decision[];
  readonly related: R;
}

/** A finding whose cause may lie in other objects. */
export interface Problem extends Omit<Finding, "object"> {
  /** Objects in which to look for the cause, the most likely one first. */
  readonly follow?: readonly ObjectRef[];
  /** The finding counts only when one of the objects in `follow` is unhealthy. */
  readonly onlyIfFollowed?: boolean;
}

export type Rule<T, R> = (facts: Facts<T, R>) => Problem | undefined;

export interface KindRules<T = KubeObject, R = unknown> {
  gather(object: T, reader: Reader): Promise<R>;
  /** Rules for an object that is being deleted; the rules for any kind are evaluated after them. */
  readonly deletion?: readonly Rule<T, R>[];
  /** In order of precedence, the most specific rule first: the first one with a finding decides. */
  readonly rules: readonly Rule<T, R>[];
}

/** Rules of a kind, with the type of the kind erased. */
// Cast: the table finds them by the kind of the object.
export const rulesFor = <T extends KubeObject, R>(rules: KindRules<T, R>): KindRules => rules as KindRules;

interface AnyCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string | null;
}

export const conditionOf = <C extends AnyCondition>(conditions: readonly C[] | undefined, type: string): C | undefined =>
  conditions?.find((condition) => condition.type === type);

/** `since` of a finding from a time that may be absent. */
export const sinceTime = (time: string | null | undefined): { since?: string } => (time ? { since: time } : {});

/** When the event was last seen: series, lastTimestamp, eventTime or the object's creation, in this order. RFC 3339. */
export const timeOfEvent = ({ lastTimestamp, eventTime, series, metadata }: Event): string | undefined =>
  series?.lastObservedTime ?? lastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? undefined;

/** When the event was first seen: firstTimestamp, eventTime or the object's creation, in this order. RFC 3339. */
export const firstTimeOfEvent = (event: Event): string | undefined =>
  event.firstTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp ?? undefined;

/** The latest event with one of the reasons. */
export const latestEvent = (events: readonly Event[], reasons: readonly string[]): Event | undefined =>
  events.find((event) => reasons.includes(event.reason ?? ""));

/** Whether the time is at least `ms` ago; false when it is absent. */
export const isOlder = (time: string | null | undefined, ms: number, now: number): boolean => {
  const at = time ? parseTime(time) : undefined;
  return at !== undefined && now - at >= ms;
};

export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

/** Joins a message to one line, truncated to `atMost` characters. */
export function oneLine(text: string | undefined, atMost = 400): string {
  const line = (text ?? "").replaceAll(/\s+/g, " ").trim();
  return line.length <= atMost ? line : `${line.slice(0, atMost - 1)}…`;
}

/** The message as the end of a summary, `: <message>`; empty without one. */
export const detail = (text: string | undefined, atMost?: number): string => {
  const line = oneLine(text, atMost);
  return line === "" ? "" : `: ${line}`;
};

/** `app=web,tier=front` */
export const labelsText = (labels: Readonly<Record<string, string>> | undefined): string =>
  Object.entries(labels ?? {})
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
