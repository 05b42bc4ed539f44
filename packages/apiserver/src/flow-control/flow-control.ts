/**
 * The flow schemas and priority levels in effect. A request belongs to the first matching schema.
 * Source: k8s.io/apiserver pkg/util/flowcontrol/apf_controller.go
 */
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { type Classified, matchesRules } from "./flow-rules.ts";
import type { FlowControlMetrics, FlowMetrics } from "./metrics.ts";
import { type Configuration, type FlowSchema, type LevelPlan, type Limits, planFlowControl } from "./plan.ts";
import { QueueSet } from "./queue-set.ts";

export interface Level {
  readonly plan: LevelPlan;
  /** undefined: exempt. */
  readonly queues: QueueSet | undefined;
  /** Its object is deleted, but requests are still waiting or executing. */
  readonly quiescing: boolean;
}

/** The schema and the priority level of a request. */
export interface Flow {
  readonly schema: string;
  readonly schemaUid: string;
  readonly levelUid: string;
  readonly queues: QueueSet | undefined;
  readonly counted: FlowMetrics;
  distinguisher(request: Classified): string;
}

export interface FlowControl {
  /** Applies a new configuration. Missing mandatory objects are added. */
  configure(wanted: Configuration): void;
  flowOf(request: Classified): Flow;
  /** Sorted by name. */
  levels(): Iterable<Level>;
}

export interface FlowControlOptions {
  /** In effect until the cluster's objects are known, and whenever they are missing. The catch-all schema matches any request. */
  readonly mandatory: Configuration;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly metrics: FlowControlMetrics;
}

interface Rule extends Flow {
  readonly rules: NonNullable<FlowSchema["spec"]["rules"]>;
}

const catchAll = "catch-all";

/** Creates flow control with the mandatory configuration in effect. */
export function newFlowControl({ mandatory, limits, clock, metrics }: FlowControlOptions): FlowControl {
  let levels = new Map<string, Level>();
  let rules: readonly Rule[] = [];
  let fallback: Rule;

  function configure(wanted: Configuration): void {
    const before = levels;
    const gone = [...before.values()].filter(({ queues }) => queues?.idle === false).map(({ plan }) => plan);
    const plan = planFlowControl(wanted, mandatory, limits, gone);
    const alive = new Set([...wanted.levels, ...mandatory.levels].map(({ metadata }) => metadata.name));
    levels = new Map(
      plan.levels.map((level) => {
        const queues = queueSetFor(level, before.get(level.name)?.queues);
        const quiescing = !alive.has(level.name);
        if (queues !== undefined) queues.onIdle = quiescing ? () => configure(wanted) : undefined;
        return [level.name, { plan: level, queues, quiescing }];
      }),
    );
    for (const [name, { queues }] of before) if (levels.get(name)?.queues !== queues) queues?.retire();
    rules = plan.schemas.map((schema) => ruleOf(schema, levels.get(schema.spec.priorityLevelConfiguration.name) as Level));
    fallback = rules.find(({ schema }) => schema === catchAll) as Rule;
  }

  /** Keeps an existing queue set, so that queued requests survive a change of limits. */
  function queueSetFor({ name, queueSet }: LevelPlan, existing: QueueSet | undefined): QueueSet | undefined {
    if (queueSet === undefined) return undefined;
    if (existing === undefined) return new QueueSet(queueSet, clock, metrics.level(name));
    existing.reconfigure(queueSet);
    return existing;
  }

  function ruleOf({ metadata: { name: schema = "", uid = "" }, spec }: FlowSchema, { plan, queues }: Level): Rule {
    let counted: FlowMetrics | undefined;
    return {
      schema,
      schemaUid: uid,
      levelUid: plan.uid,
      queues,
      rules: spec.rules ?? [],
      get counted() {
        counted ??= metrics.flow(plan.name, schema);
        return counted;
      },
      distinguisher: ({ info, user }) => {
        const type = spec.distinguisherMethod?.type;
        if (type === "ByUser") return user.name;
        return type === "ByNamespace" ? info.namespace : "";
      },
    };
  }

  configure({ levels: [], schemas: [] });
  return {
    configure,
    flowOf: (request) => rules.find((rule) => matchesRules(rule.rules, request)) ?? fallback,
    levels: () => [...levels.values()].sort((a, b) => (a.plan.name < b.plan.name ? -1 : 1)),
  };
}
