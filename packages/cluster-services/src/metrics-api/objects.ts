/** NodeMetrics and PodMetrics of metrics.k8s.io/v1beta1, and their tables. */
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import { formatDuration, formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { ObjectMeta } from "@coxswain/apimachinery/objects/meta/types";
import type { PodUsage, Usage } from "./usage-store.ts";

export const group = "metrics.k8s.io";
export const groupVersion = `${group}/v1beta1`;

interface ResourceList {
  readonly cpu: string;
  readonly memory: string;
}

export interface NodeMetrics {
  readonly kind: "NodeMetrics";
  readonly apiVersion: string;
  readonly metadata: ObjectMeta;
  readonly timestamp: string;
  /** As Go formats durations: `15.023s`. */
  readonly window: string;
  readonly usage: ResourceList;
}

export interface PodMetrics extends Omit<NodeMetrics, "kind" | "usage"> {
  readonly kind: "PodMetrics";
  readonly containers: readonly { readonly name: string; readonly usage: ResourceList }[];
}

type Metrics = NodeMetrics | PodMetrics;

/** @param now ms since the epoch, the object's creationTimestamp */
export function nodeMetrics({ name, labels }: ObjectMeta, usage: Usage, now: number): NodeMetrics {
  return { kind: "NodeMetrics", ...shared({ name, labels }, usage, now), usage: resourcesOf(usage) };
}

/** @param now ms since the epoch, the object's creationTimestamp */
export function podMetrics({ name, namespace, labels }: ObjectMeta, usage: PodUsage, now: number): PodMetrics {
  const containers = [...usage.containers].map(([container, one]) => ({ name: container, usage: resourcesOf(one) }));
  return { kind: "PodMetrics", ...shared({ name, namespace, labels }, usage, now), containers };
}

function shared(metadata: ObjectMeta, { at, windowMs }: { at: number; windowMs: number }, now: number) {
  return {
    apiVersion: groupVersion,
    metadata: { ...metadata, creationTimestamp: formatTime(now) },
    timestamp: formatTime(at),
    window: formatDuration(windowMs),
  };
}

/** Quantities in the notation of metrics-server: `12345678n`, `10240Ki`. */
function resourcesOf({ cpuCores, memoryBytes }: Usage): ResourceList {
  const cpu = new Quantity(BigInt(Math.round(cpuCores * 1e9)), "DecimalSI");
  return { cpu: String(cpu), memory: String(Quantity.fromValue(Math.round(memoryBytes), "BinarySI")) };
}

export const listOf = (kind: "NodeMetricsList" | "PodMetricsList", items: readonly Metrics[]) => ({
  kind,
  apiVersion: groupVersion,
  metadata: {},
  items,
});

const cell = (name: string, type: string, description: string, format = "") => ({
  name,
  type,
  format,
  description,
  priority: 0,
});

/** The table that `kubectl get` shows. Source: k8s.io/metrics and metrics-server pkg/api/table.go */
export function tableOf(items: readonly Metrics[]) {
  const rows = items.map((item) => {
    const { kind: _, apiVersion: __, ...object } = item;
    const totals = "usage" in object ? object.usage : sumOf(object.containers);
    const { metadata } = object;
    return {
      cells: [metadata.name, totals.cpu, totals.memory, object.window],
      object: { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata },
    };
  });
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata: {},
    columnDefinitions: [
      cell("Name", "string", "Name of the resource", "name"),
      cell("cpu", "string", "Use of the resource cpu"),
      cell("memory", "string", "Use of the resource memory"),
      cell("Window", "string", "The time over which the use of CPU was measured"),
    ],
    rows,
  };
}

function sumOf(containers: PodMetrics["containers"]): ResourceList {
  const sum = (of: (usage: ResourceList) => string): string =>
    String(containers.map(({ usage }) => Quantity.parse(of(usage))).reduce((total, one) => total.add(one), Quantity.parse("0")));
  return { cpu: sum(({ cpu }) => cpu), memory: sum(({ memory }) => memory) };
}
