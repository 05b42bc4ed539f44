import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { MetricSpec, MetricStatus } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v2";

type Fields = Readonly<Record<string, unknown>>;

/** For each metric source: field paths in v2 and field names in the flat form of v2beta1 and v1. */
type Shape = Readonly<Record<string, readonly (readonly [path: string, flat: string])[]>>;

/** @param side where v2 has the values. Source: pkg/apis/autoscaling/{v1,v2beta1}/conversion.go, the same in both */
const shapeOf = (side: "target" | "current"): Shape => ({
  resource: [
    ["name", "name"],
    [`${side}.averageUtilization`, `${side}AverageUtilization`],
    [`${side}.averageValue`, `${side}AverageValue`],
  ],
  containerResource: [
    ["name", "name"],
    ["container", "container"],
    [`${side}.averageUtilization`, `${side}AverageUtilization`],
    [`${side}.averageValue`, `${side}AverageValue`],
  ],
  pods: [
    ["metric.name", "metricName"],
    ["metric.selector", "selector"],
    [`${side}.averageValue`, `${side}AverageValue`],
  ],
  object: [
    ["describedObject", "target"],
    ["metric.name", "metricName"],
    ["metric.selector", "selector"],
    [`${side}.value`, `${side}Value`],
    [`${side}.averageValue`, "averageValue"],
  ],
  external: [
    ["metric.name", "metricName"],
    ["metric.selector", "metricSelector"],
    [`${side}.value`, `${side}Value`],
    [`${side}.averageValue`, `${side}AverageValue`],
  ],
});

const specShape = shapeOf("target");
const statusShape = shapeOf("current");

/** The flat form has no target type; it is derived from the fields that are set. */
const targetTypes: Readonly<Record<string, (flat: Fields) => string>> = {
  resource: (flat) => (flat["targetAverageUtilization"] === undefined ? "AverageValue" : "Utilization"),
  containerResource: (flat) => (flat["targetAverageUtilization"] === undefined ? "AverageValue" : "Utilization"),
  pods: () => "AverageValue",
  object: (flat) => (flat["averageValue"] === undefined ? "Value" : "AverageValue"),
  external: (flat) => (flat["targetValue"] === undefined ? "AverageValue" : "Value"),
};

/** Metrics in the flat form of v2beta1 and of the annotations of v1; not in canonical form. */
export const flatSpec = (metric: MetricSpec): object => flattened(metric, specShape);
export const flatStatus = (status: MetricStatus): object => flattened(status, statusShape);

/** From the flat form to v2. @param flat in canonical form */
export function statusOfFlat(flat: object): MetricStatus {
  const status: object = unflattened(flat, statusShape);
  return status as MetricStatus; // cast: the flat form was decoded by its descriptor, and the shape writes the fields of v2
}

/** From the flat form to v2, with the target type that follows from the fields. @param flat in canonical form */
export function specOfFlat(flat: object): MetricSpec {
  const metric = unflattened(flat, specShape);
  for (const [source, typeOf] of Object.entries(targetTypes)) {
    const part = metric[source];
    if (isJsonObject(part)) part["target"] = { type: typeOf(fieldsOf(fieldsOf(flat)[source])), ...fieldsOf(part["target"]) };
  }
  const spec: object = metric;
  return spec as MetricSpec; // cast: the flat form was decoded by its descriptor, and the shape writes the fields of v2
}

function flattened(metric: object, shape: Shape): object {
  const from = fieldsOf(metric);
  const flat: Record<string, unknown> = { type: from["type"] };
  for (const [source, fields] of Object.entries(shape)) {
    const part = from[source];
    if (isJsonObject(part)) flat[source] = Object.fromEntries(fields.map(([path, name]) => [name, valueAt(part, path)]));
  }
  return flat;
}

function unflattened(flat: object, shape: Shape): Record<string, unknown> {
  const from = fieldsOf(flat);
  const metric: Record<string, unknown> = { type: from["type"] };
  for (const [source, fields] of Object.entries(shape)) {
    const part = from[source];
    if (!isJsonObject(part)) continue;
    const to: Record<string, unknown> = {};
    for (const [path, name] of fields) {
      const value = part[name];
      if (value === undefined) continue;
      const [outer = "", inner] = path.split(".");
      to[outer] = inner === undefined ? value : { ...fieldsOf(to[outer]), [inner]: value };
    }
    metric[source] = to;
  }
  return metric;
}

const fieldsOf = (value: unknown): Fields => (isJsonObject(value) ? value : {});
const valueAt = (part: Fields, path: string): unknown =>
  path.split(".").reduce<unknown>((value, field) => fieldsOf(value)[field], part);
