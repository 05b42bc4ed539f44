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
// Cast: the shape names the fields of both forms.
export const flatSpec = (metric: MetricSpec): object => flattened(metric as unknown as Fields, specShape);
// Cast: the shape names the fields of both forms.
export const flatStatus = (status: MetricStatus): object => flattened(status as unknown as Fields, statusShape);

/** From the flat form to v2. @param flat in canonical form */
// Cast: the shape names the fields of both forms.
export const statusOfFlat = (flat: object): MetricStatus => unflattened(flat as Fields, statusShape) as unknown as MetricStatus;

/** From the flat form to v2, with the target type that follows from the fields. @param flat in canonical form */
export function specOfFlat(flat: object): MetricSpec {
  const metric = unflattened(flat as Fields, specShape); // cast: the shape names the fields of both forms
  for (const [source, typeOf] of Object.entries(targetTypes)) {
    const part = metric[source] as { target?: object } | undefined; // cast: the shape names the fields of both forms
    if (part === undefined) continue;
    // Cast: the shape names the fields of both forms.
    part.target = { type: typeOf((flat as Record<string, Fields>)[source]!), ...part.target };
  }
  return metric as unknown as MetricSpec; // cast: the shape names the fields of both forms
}

function flattened(metric: Fields, shape: Shape): object {
  const flat: Record<string, unknown> = { type: metric["type"] };
  for (const [source, fields] of Object.entries(shape)) {
    // Cast: the shape names the fields of both forms.
    const from = metric[source] as Record<string, Fields | undefined> | undefined;
    if (from === undefined) continue;
    flat[source] = Object.fromEntries(
      fields.map(([path, name]) => {
        const [outer, inner] = path.split(".") as [string, string | undefined]; // cast: paths have one or two parts
        return [name, inner === undefined ? from[outer] : from[outer]?.[inner]];
      }),
    );
  }
  return flat;
}

function unflattened(flat: Fields, shape: Shape): Record<string, unknown> {
  const metric: Record<string, unknown> = { type: flat["type"] };
  for (const [source, fields] of Object.entries(shape)) {
    const from = flat[source] as Fields | undefined; // cast: the shape names the fields of both forms
    if (from === undefined) continue;
    const to: Record<string, unknown> = {};
    for (const [path, name] of fields) {
      const value = from[name];
      if (value === undefined) continue;
      const [outer, inner] = path.split(".") as [string, string | undefined]; // cast: paths have one or two parts
      // Cast: the shape names the fields of both forms.
      to[outer] = inner === undefined ? value : { ...(to[outer] as object | undefined), [inner]: value };
    }
    metric[source] = to;
  }
  return metric;
}
