import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type {
  CrossVersionObjectReference,
  MetricIdentifier,
  MetricSpec,
  MetricStatus,
  MetricTarget,
  MetricValueStatus,
} from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { LabelSelector as LabelSelectorObject } from "@coxswain/apimachinery/objects/schema/kinds/meta/v1";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { type MetricQuery, type MetricsClient, withErrorPrefix } from "./metrics-client.ts";
import {
  type Proposal,
  type Rules,
  replicasForAverage,
  replicasForShare,
  replicasForUtilization,
  replicasForValue,
} from "./replica-calculator.ts";

/** Scale target: the workload's Pods and replica counts. */
interface Target {
  readonly namespace: string;
  readonly selector: LabelSelector;
  /** Pods matching the selector. */
  readonly pods: readonly Pod[];
  readonly specReplicas: number;
  readonly statusReplicas: number;
}

interface Metrics {
  readonly client: MetricsClient;
  readonly rules: Rules;
}

/** Result of one metric. */
export interface MetricProposal {
  readonly replicas: number;
  /** Name in Events. */
  readonly name: string;
  readonly status: MetricStatus;
}

/** A metric could not be evaluated. `reason` is the Event reason, `shown` the text for users, `message` the text for the log. */
export class MetricError extends Error {
  readonly reason: string;
  readonly shown: string;
  constructor(reason: string, shown: string, message: string) {
    super(message);
    this.reason = reason;
    this.shown = shown;
  }
}

/**
 * Computes the replica count proposed by one metric.
 * Source: pkg/controller/podautoscaler/horizontal.go computeReplicasForMetric
 */
export async function proposalOf(
  spec: MetricSpec,
  target: Target,
  metrics: Metrics,
  signal: AbortSignal,
): Promise<MetricProposal> {
  const source = Object.hasOwn(sources, spec.type) ? sources[spec.type] : undefined;
  if (source === undefined) {
    const message = `unknown metric source type "${spec.type}"`;
    throw new MetricError("InvalidMetricSourceType", message, message);
  }
  try {
    return await source.propose(spec, target, metrics, signal);
  } catch (err) {
    const shown = messageOf(err);
    throw new MetricError(source.reason, shown, `failed to get ${source.subject(spec)}: ${shown}`);
  }
}

interface Source {
  readonly reason: string;
  readonly subject: (spec: MetricSpec) => string;
  readonly propose: (spec: MetricSpec, target: Target, metrics: Metrics, signal: AbortSignal) => Promise<MetricProposal>;
}

const sources: Readonly<Record<string, Source>> = {
  Resource: {
    reason: "FailedGetResourceMetric",
    subject: ({ resource }) => `${resource?.name} resource metric value`,
    async propose({ resource }, workload, metrics, signal) {
      const { name, target } = required(resource);
      const { current, ...proposal } = await proposeForResource(name, undefined, target, workload, metrics, signal);
      return { ...proposal, status: { type: "Resource", resource: { name, current } } };
    },
  },
  ContainerResource: {
    reason: "FailedGetContainerResourceMetric",
    subject: ({ containerResource }) => `${containerResource?.container} container metric value`,
    async propose({ containerResource }, workload, metrics, signal) {
      const { name, container, target } = required(containerResource);
      const { current, ...proposal } = await proposeForResource(name, container, target, workload, metrics, signal);
      return { ...proposal, status: { type: "ContainerResource", containerResource: { name, container, current } } };
    },
  },
  Pods: {
    reason: "FailedGetPodsMetric",
    subject: () => "pods metric value",
    async propose({ pods }, workload, { client, rules }, signal) {
      const { metric, target } = required(pods);
      const { pods: selected, specReplicas: current } = workload;
      const values = await withErrorPrefix(`unable to get metric ${metric.name}`, client.pods(queryOf(metric), workload, signal));
      const wanted = milliOf(target.averageValue);
      const proposal = replicasForAverage({
        pods: selected,
        metrics: values,
        resource: undefined,
        target: wanted,
        current,
        rules,
      });
      return {
        replicas: proposal.replicas,
        name: `pods metric ${metric.name}`,
        status: { type: "Pods", pods: { metric, current: { averageValue: quantity(proposal.value) } } },
      };
    },
  },
  Object: {
    reason: "FailedGetObjectMetric",
    subject: ({ object }) =>
      object !== undefined && isAverageOfTotal("object", object.target)
        ? `object metric value: failed to get ${object.metric.name} object metric`
        : "object metric value",
    async propose({ object }, workload, metrics, signal) {
      const { metric, target, describedObject } = required(object);
      const measure = () => objectValue(metric, describedObject, workload.namespace, metrics, signal);
      const { replicas, current } = await proposeForValue("object", target, measure, workload, metrics.rules);
      // As upstream, an AverageValue target is reported as an external metric without the described object.
      const shared = isAverageOfTotal("object", target);
      const described = shared ? { kind: "", name: "" } : describedObject;
      return {
        replicas,
        name: shared ? externalName(metric) : `${describedObject.kind} metric ${metric.name}`,
        status: { type: "Object", object: { metric, describedObject: described, current } },
      };
    },
  },
  External: {
    reason: "FailedGetExternalMetric",
    subject: ({ external }) =>
      `${external?.metric.name} external metric value: failed to get ${external?.metric.name} external metric`,
    async propose({ external }, workload, { client, rules }, signal) {
      const { metric, target } = required(external);
      const { namespace } = workload;
      const text = `unable to get external metric ${namespace}/${metric.name}/${selectorText(metric.selector)}`;
      const measure = async (): Promise<number> => {
        const values = await withErrorPrefix(text, client.external(queryOf(metric), namespace, signal));
        return values.reduce((sum, value) => sum + value, 0);
      };
      const { replicas, current } = await proposeForValue("external", target, measure, workload, rules);
      return { replicas, name: externalName(metric), status: { type: "External", external: { metric, current } } };
    },
  },
};

async function proposeForResource(
  resource: string,
  container: string | undefined,
  target: MetricTarget,
  workload: Target,
  { client, rules }: Metrics,
  signal: AbortSignal,
): Promise<{ replicas: number; name: string; current: MetricValueStatus }> {
  const { pods, specReplicas: current } = workload;
  const { averageValue, averageUtilization } = target;
  if (averageValue === undefined && averageUtilization === undefined)
    throw new Error("invalid resource metric source: neither a utilization target nor a value target was set");
  const compute = async (): Promise<Proposal> => {
    const response = client.resource(resource, workload, container, signal);
    const metrics = await withErrorPrefix(`unable to get metrics for resource ${resource}`, response);
    if (averageValue !== undefined)
      return replicasForAverage({ pods, metrics, resource, target: milliOf(averageValue), current, rules });
    const percent = averageUtilization!;
    return replicasForUtilization({ pods, metrics, resource, container, target: percent, current, rules });
  };
  const { replicas, utilization, value } = await withErrorPrefix(`failed to get ${resource} utilization`, compute());
  return {
    replicas,
    name: averageValue === undefined ? `${resource} resource utilization (percentage of request)` : `${resource} resource`,
    current: {
      ...(utilization === undefined ? {} : { averageUtilization: utilization }),
      averageValue: quantity(value),
    },
  };
}

type ValueSource = "object" | "external";

/**
 * Proposal for a Value or AverageValue target.
 * @param kind upstream's name of the source in error texts
 */
async function proposeForValue(
  kind: ValueSource,
  target: MetricTarget,
  measure: () => Promise<number>,
  { pods, specReplicas, statusReplicas }: Target,
  rules: Rules,
): Promise<{ replicas: number; current: MetricValueStatus }> {
  const { type, averageValue, value: totalValue } = target;
  if (isAverageOfTotal(kind, target)) {
    const share = { value: await measure(), target: milliOf(averageValue), current: statusReplicas, rules };
    const { replicas, value } = replicasForShare(share);
    return { replicas, current: { averageValue: quantity(value) } };
  }
  if (totalValue === undefined || (kind === "object" && type !== "Value"))
    throw new Error(`invalid ${kind} metric source: neither a value target nor an average value target was set`);
  const { replicas, value } = replicasForValue({
    pods,
    value: await measure(),
    target: milliOf(totalValue),
    current: specReplicas,
    rules,
  });
  return { replicas, current: { value: quantity(value) } };
}

/** Upstream goes by the type of an object's target, but by the values of an external one. */
function isAverageOfTotal(kind: ValueSource, { type, averageValue }: MetricTarget): boolean {
  return averageValue !== undefined && (kind === "external" || type === "AverageValue");
}

async function objectValue(
  metric: MetricIdentifier,
  object: CrossVersionObjectReference,
  namespace: string,
  { client }: Metrics,
  signal: AbortSignal,
): Promise<number> {
  try {
    return await client.object(queryOf(metric), namespace, object, signal);
  } catch (err) {
    // Word order as in upstream's message.
    throw new Error(`unable to get metric ${metric.name}: ${object.kind} on ${namespace} ${object.name}/${messageOf(err)}`);
  }
}

function required<T>(source: T | undefined): T {
  if (source === undefined) throw new Error("the metric's source is missing"); // rejected by validation
  return source;
}

/** Without a selector, all series of the metric match. */
function queryOf({ name, selector }: MetricIdentifier): MetricQuery {
  return { name, selector: selector === undefined ? LabelSelector.everything : LabelSelector.ofCached(selector) };
}

function milliOf(text: string | undefined): number {
  return Quantity.parse(text ?? "0").milliValue();
}

function quantity(milli: number): string {
  return Quantity.fromMilli(milli).toString();
}

function externalName({ name, selector }: MetricIdentifier): string {
  return `external metric ${name}(${selectorText(selector)})`;
}

/** Formats the selector like the generated Go String() method. */
export function selectorText(selector: LabelSelectorObject | undefined): string {
  if (selector === undefined) return "nil";
  const { matchLabels = {}, matchExpressions = [] } = selector;
  const labels = Object.keys(matchLabels)
    .toSorted()
    .map((key) => `${key}: ${matchLabels[key]},`);
  const expressions = matchExpressions.map(
    ({ key, operator, values = [] }) =>
      `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${(values ?? []).join(" ")}],},`,
  );
  return `&LabelSelector{MatchLabels:map[string]string{${labels.join("")}},MatchExpressions:[]LabelSelectorRequirement{${expressions.join("")}},}`;
}
