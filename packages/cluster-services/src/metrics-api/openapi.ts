import { groupVersion } from "./objects.ts";

const prefix = "io.k8s.metrics.pkg.apis.metrics.v1beta1";
const meta = "io.k8s.apimachinery.pkg.apis.meta.v1";
const ref = (name: string) => ({ $ref: `#/definitions/${name}` });
const text = (description: string) => ({ description, type: "string" });
const usage = {
  description: "The quantity of each resource that is used.",
  type: "object",
  additionalProperties: { type: "string" },
};
const types = {
  apiVersion: text("The version of the schema of this representation of an object."),
  kind: text("The REST resource that this object represents."),
};
const measured = {
  ...types,
  metadata: { ...ref(`${meta}.ObjectMeta`), description: "Standard object's metadata." },
  timestamp: { description: "End of the time over which the use was measured.", type: "string", format: "date-time" },
  window: text("Length of the time over which the use was measured."),
};

const kindOf = (kind: string) => [{ group: "metrics.k8s.io", version: "v1beta1", kind }];
const list = (kind: string, item: string) => ({
  description: `${kind} is a list of ${item}.`,
  type: "object",
  required: ["items"],
  properties: {
    ...types,
    metadata: { ...ref(`${meta}.ListMeta`), description: "Standard list metadata." },
    items: { description: `List of ${item}.`, type: "array", items: ref(`${prefix}.${item}`) },
  },
  "x-kubernetes-group-version-kind": kindOf(kind),
});

const operation = (action: string, kind: string, answer: string) => ({
  get: {
    description: `${action} ${kind}`,
    operationId: `${action}MetricsV1beta1${answer}`,
    produces: ["application/json"],
    schemes: ["https"],
    tags: ["metrics_v1beta1"],
    responses: { "200": { description: "OK", schema: ref(`${prefix}.${answer}`) } },
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": kindOf(kind)[0],
  },
});
const inPath = (name: string) => ({ name, in: "path", required: true, type: "string", uniqueItems: true });
const base = `/apis/${groupVersion}`;
const namespaced = `${base}/namespaces/{namespace}/pods`;

/** The OpenAPI document that the aggregator merges into the cluster's. */
export function openApiDocument(): unknown {
  return {
    swagger: "2.0",
    info: { title: "Coxswain metrics API", version: "v1beta1" },
    paths: {
      [`${base}/nodes`]: operation("list", "NodeMetrics", "NodeMetricsList"),
      [`${base}/nodes/{name}`]: { ...operation("get", "NodeMetrics", "NodeMetrics"), parameters: [inPath("name")] },
      [`${base}/pods`]: operation("list", "PodMetrics", "PodMetricsList"),
      [namespaced]: { ...operation("list", "PodMetrics", "PodMetricsList"), parameters: [inPath("namespace")] },
      [`${namespaced}/{name}`]: {
        ...operation("get", "PodMetrics", "PodMetrics"),
        parameters: [inPath("name"), inPath("namespace")],
      },
    },
    definitions: {
      [`${prefix}.NodeMetrics`]: {
        description: "NodeMetrics is what a node uses.",
        type: "object",
        required: ["timestamp", "window", "usage"],
        properties: { ...measured, usage },
        "x-kubernetes-group-version-kind": kindOf("NodeMetrics"),
      },
      [`${prefix}.NodeMetricsList`]: list("NodeMetricsList", "NodeMetrics"),
      [`${prefix}.ContainerMetrics`]: {
        description: "ContainerMetrics is what a container uses.",
        type: "object",
        required: ["name", "usage"],
        properties: { name: text("Name of the container, as in pod.spec.containers."), usage },
      },
      [`${prefix}.PodMetrics`]: {
        description: "PodMetrics is what the containers of a pod use.",
        type: "object",
        required: ["timestamp", "window", "containers"],
        properties: {
          ...measured,
          containers: { description: "Every container.", type: "array", items: ref(`${prefix}.ContainerMetrics`) },
        },
        "x-kubernetes-group-version-kind": kindOf("PodMetrics"),
      },
      [`${prefix}.PodMetricsList`]: list("PodMetricsList", "PodMetrics"),
      [`${meta}.ObjectMeta`]: { description: "Metadata of an object.", type: "object" },
      [`${meta}.ListMeta`]: { description: "Metadata of a list.", type: "object" },
    },
  };
}
