/**
 * Computes the limits to enforce from the configuration objects, without side effects.
 * Source: k8s.io/apiserver pkg/util/flowcontrol/apf_controller.go, cfgMeal
 */
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type {
  FlowSchema as ApiFlowSchema,
  PriorityLevelConfiguration as ApiPriorityLevel,
} from "@coxswain/apimachinery/objects/schema/kinds/flowcontrol/v1beta2";
import type { QueueSetConfig } from "./queue-set.ts";

export type FlowSchema = ApiFlowSchema & KubeObject;
export type PriorityLevel = ApiPriorityLevel & KubeObject;

export interface Configuration {
  readonly levels: readonly PriorityLevel[];
  readonly schemas: readonly FlowSchema[];
}

export interface Limits {
  /** Total over all levels. */
  readonly concurrency: number;
  readonly requestWaitLimitMs: number;
}

export interface LevelPlan {
  readonly name: string;
  readonly uid: string;
  /** undefined: exempt. */
  readonly queueSet: QueueSetConfig | undefined;
  readonly shares: number;
}

interface Plan {
  readonly levels: readonly LevelPlan[];
  /** In order of precedence; each schema references a level of the plan. */
  readonly schemas: readonly FlowSchema[];
}

/**
 * @param mandatory objects that are added where they are missing
 * @param quiescing deleted levels with unfinished requests; they keep their shares and get no more requests
 */
export function planFlowControl(
  wanted: Configuration,
  mandatory: Configuration,
  limits: Limits,
  quiescing: readonly LevelPlan[] = [],
): Plan {
  const levels = withMissing(wanted.levels, mandatory.levels);
  const kept = quiescing.filter(({ name }) => !levels.some(({ metadata }) => metadata.name === name));
  const shareSum = levels.reduce((sum, { spec }) => sum + sharesOf(spec), 0) + kept.reduce((sum, { shares }) => sum + shares, 0);
  const plan = (name: string, uid: string, shares: number, queuing: QueueSetConfig["queuing"]): LevelPlan => ({
    name,
    uid,
    shares,
    queueSet: {
      concurrencyLimit: Math.ceil((limits.concurrency * shares) / shareSum),
      queuing,
      requestWaitLimitMs: limits.requestWaitLimitMs,
    },
  });
  const planned = levels.map(({ metadata: { name = "", uid = "" }, spec }) =>
    spec.type === "Exempt" ? { name, uid, shares: 0, queueSet: undefined } : plan(name, uid, sharesOf(spec), queuingOf(spec)),
  );
  const names = new Set(planned.map(({ name }) => name));
  return {
    levels: [...planned, ...kept.map(({ name, uid, shares, queueSet }) => plan(name, uid, shares, queueSet?.queuing))],
    schemas: withMissing(wanted.schemas, mandatory.schemas)
      .filter(({ spec }) => names.has(spec.priorityLevelConfiguration.name))
      .sort(byPrecedence),
  };
}

function withMissing<T extends KubeObject>(objects: readonly T[], mandatory: readonly T[]): T[] {
  const names = new Set(objects.map(({ metadata }) => metadata.name));
  return [...objects, ...mandatory.filter(({ metadata }) => !names.has(metadata.name))];
}

const sharesOf = ({ type, limited }: ApiPriorityLevel["spec"]): number =>
  type === "Exempt" ? 0 : (limited?.assuredConcurrencyShares ?? 0);

function queuingOf({ limited }: ApiPriorityLevel["spec"]): QueueSetConfig["queuing"] {
  const response = limited?.limitResponse;
  return response?.type === "Queue" ? response.queuing : undefined;
}

function byPrecedence(a: FlowSchema, b: FlowSchema): number {
  const difference = a.spec.matchingPrecedence - b.spec.matchingPrecedence;
  if (difference !== 0) return difference;
  return (a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1;
}
