/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "horizontalpodautoscalers.autoscaling";
const external = (target: object): object => ({ type: "External", external: { metric: { name: "m" }, target } });
const ofObject = (target: object, described: object = { kind: "A", name: "a" }): object => ({
  type: "Object",
  object: { describedObject: described, metric: { name: "m" }, target },
});
const ofPods = (target: object): object => ({ type: "Pods", pods: { metric: { name: "m" }, target } });
const ofResource = (target: object): object => ({ type: "Resource", resource: { name: "cpu", target } });
const ofContainer = (name: string, container = "c"): object => ({
  type: "ContainerResource",
  containerResource: { name, container, target: { type: "Utilization", averageUtilization: 1 } },
});
const metrics = (...list: object[]) => ({ "spec.metrics": list });
const at = "spec.metrics[0]";
const noQuantity = "Invalid value: resource.Quantity{";
const policy = { type: "Pods", value: 1, periodSeconds: 1 };
const rules = (more: object) => ({ "spec.behavior": { scaleUp: { policies: [policy], ...more } } });

testAccepted([
  {
    resource,
    name: "each type of metric with each type of target",
    taken: [
      metrics(external({ type: "Value", value: "1n" }), external({ type: "AverageValue", averageValue: "1" })),
      metrics(ofObject({ type: "Value", value: "1" }), ofObject({ type: "AverageValue", averageValue: "1" })),
      metrics(ofObject({ type: "Utilization", value: "1", averageValue: "1" })),
      metrics(ofPods({ type: "AverageValue", averageValue: "1" }), ofPods({ type: "Value", value: "1", averageValue: "1" })),
      metrics(
        ofResource({ type: "Utilization", averageUtilization: 1 }),
        ofResource({ type: "AverageValue", averageValue: "1" }),
      ),
    ],
    refused: [
      [metrics(external({ type: "Value", value: "0" })), `${at}.external.target.value: ${noQuantity}`],
      [metrics(external({ type: "AverageValue", averageValue: "0" })), `${at}.external.target.averageValue: ${noQuantity}`],
      [metrics(ofResource({ type: "AverageValue", averageValue: "-1m" })), `${at}.resource.target.averageValue: ${noQuantity}`],
      [
        metrics(ofObject({ type: "Value", value: "1" }, { kind: "A", name: ".." })),
        `${at}.object.describedObject.name: Invalid value: "..": may not be '..'`,
      ],
      [
        metrics(ofObject({ type: "Value", value: "1" }, { kind: "A%", name: "a" })),
        `${at}.object.describedObject.kind: Invalid value: "A%": may not contain '%'`,
      ],
    ],
  },
  {
    resource,
    name: "metrics of containers",
    gates: { HPAContainerMetrics: true },
    taken: [metrics(ofContainer("cpu")), metrics(ofContainer("memory", "a".repeat(63)))],
    refused: [
      [
        metrics(ofContainer("cpu", "a".repeat(64))),
        `${at}.containerResource.container: Invalid value: "${"a".repeat(64)}": must be`,
      ],
      [metrics({ ...ofContainer("cpu"), type: "Resource" }), `${at}.resource: Required value: must populate information`],
    ],
  },
  {
    resource,
    name: "of each metric one source, that of its type",
    taken: [metrics(ofPods({ type: "AverageValue", averageValue: "1" }))],
    refused: [
      [
        metrics({ ...ofResource({ type: "Utilization", averageUtilization: 1 }), type: "Pods" }),
        `${at}.pods: Required value: must populate information for the given metric source`,
      ],
      [
        metrics({
          ...ofResource({ type: "Utilization", averageUtilization: 1 }),
          ...ofPods({ type: "AverageValue", averageValue: "1" }),
        }),
        `${at}.resource: Forbidden: must populate the given metric source only`,
      ],
      [
        metrics(ofPods({ type: "AverageValue", averageValue: "1" }), { type: "Resource" }),
        "spec.metrics[1].resource: Required value: must populate information for the given metric source",
      ],
    ],
  },
  {
    resource,
    name: "with the gate a minimum of none, for metrics that exist without pods",
    gates: { HPAScaleToZero: true },
    with: { "spec.minReplicas": 0 },
    taken: [
      metrics(external({ type: "Value", value: "1" })),
      metrics(ofObject({ type: "Value", value: "1" })),
      metrics(ofResource({ type: "Utilization", averageUtilization: 1 }), external({ type: "Value", value: "1" })),
    ],
    refused: [
      [
        metrics(ofPods({ type: "AverageValue", averageValue: "1" })),
        "spec.metrics: Forbidden: must specify at least one Object or External",
      ],
      [{ "spec.minReplicas": -1 }, "spec.minReplicas: Invalid value: -1: must be greater than or equal to 0"],
    ],
  },
  {
    resource,
    name: "a minimum of none where it was so before",
    before: { "spec.minReplicas": 0 },
    with: metrics(external({ type: "Value", value: "1" })),
    taken: [{}, { "spec.minReplicas": 1 }, { "spec.maxReplicas": 1 }],
  },
  {
    resource,
    name: "no minimum of none where there was one before",
    before: { "spec.minReplicas": 1 },
    with: metrics(external({ type: "Value", value: "1" })),
    taken: [{ "spec.maxReplicas": 1 }],
    refused: [[{ "spec.minReplicas": 0 }, "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"]],
  },
  {
    resource,
    name: "rules of behaviour up to their limits",
    taken: [
      ...["Disabled", "Max", "Min"].map((selectPolicy) => rules({ selectPolicy })),
      rules({ stabilizationWindowSeconds: 0 }),
      rules({ stabilizationWindowSeconds: 3600 }),
      rules({ policies: [policy, { type: "Percent", value: 2 ** 31 - 1, periodSeconds: 1800 }] }),
    ],
    refused: [
      [
        rules({ policies: [policy, { ...policy, value: 0 }] }),
        "spec.behavior.scaleUp.policies[1].value: Invalid value: 0: must be greater than zero",
      ],
      [
        rules({ policies: [policy, { ...policy, periodSeconds: 1801 }] }),
        "spec.behavior.scaleUp.policies[1].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
      ],
      [
        rules({ stabilizationWindowSeconds: 3601 }),
        "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less",
      ],
      [rules({ selectPolicy: "" }), 'spec.behavior.scaleUp.selectPolicy: Unsupported value: ""'],
    ],
  },
  {
    resource,
    name: "counts of nothing",
    status: true,
    before: {},
    taken: [{ status: { currentReplicas: 0, desiredReplicas: 0 } }],
  },
]);
