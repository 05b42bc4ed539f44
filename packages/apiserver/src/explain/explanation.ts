/** The response of `/debug/explain/…`: the cause, and the chain of findings that leads to it. */
import type { Decision, ObjectRef } from "@coxswain/apimachinery/decisions/decision";

export interface Finding {
  readonly object: ObjectRef;
  /** The source: a daemon, a controller, or "explain" when it follows from the objects alone. */
  readonly by: string;
  /** CamelCase and stable, for programs. */
  readonly reason: string;
  /** One line of plain English, with the numbers. */
  readonly summary: string;
  /** RFC 3339 */
  readonly since?: string;
  readonly remedy?: string;
}

export interface Explanation {
  readonly kind: "Explanation";
  readonly apiVersion: "diagnostics.coxswain.dev/v1";
  readonly object: ObjectRef;
  readonly healthy: boolean;
  /** The last finding of the chain; absent for a healthy object. */
  readonly cause?: Finding;
  /** From the explained object to the cause. */
  readonly chain: readonly Finding[];
  /** The last decision of each source about the object and the cause, limited to objects that the user may read. */
  readonly decisions?: readonly Decision[];
  /** Daemons that were queried for their decisions and did not answer in time. */
  readonly silent?: readonly string[];
}

/** `persistentvolumeclaim/data`, as kubectl prints names. */
export const nameOf = ({ kind, name }: Pick<ObjectRef, "kind" | "name">): string => `${kind.toLowerCase()}/${name}`;
