import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules(
  "horizontalpodautoscalers.autoscaling",
  { spec: { maxReplicas: 2, scaleTargetRef: { kind: "Deployment", name: "d" } } },
  [
    { name: "an autoscaler", change: {}, want: [] },
    {
      name: "numbers",
      change: { "spec.minReplicas": 0, "spec.maxReplicas": 0 },
      want: [
        "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
        "spec.maxReplicas: Invalid value: 0: must be greater than 0",
        "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas",
      ],
    },
    {
      name: "a minimum of none that was there before its gate was turned off",
      before: { "spec.minReplicas": 0 },
      change: { "spec.maxReplicas": 0 },
      want: [
        "spec.maxReplicas: Invalid value: 0: must be greater than 0",
        "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to zero replicas",
      ],
    },
    {
      name: "a maximum below the minimum",
      change: { "spec.minReplicas": 3 },
      want: ["spec.maxReplicas: Invalid value: 2: must be greater than or equal to `minReplicas`"],
    },
    {
      name: "no target",
      change: { "spec.scaleTargetRef": { kind: "", name: "a/b" } },
      want: ["spec.scaleTargetRef.kind: Required value", "spec.scaleTargetRef.name: Invalid value: \"a/b\": may not contain '/'"],
    },
    {
      name: "metrics of nothing and of two",
      change: {
        "spec.metrics": [
          { type: "" },
          { type: "Mine" },
          { type: "Pods" },
          { type: "Resource", resource: { name: "", target: { type: "Utilization" } } },
          {
            type: "Resource",
            resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 0 } },
            pods: { metric: { name: "x" }, target: { type: "AverageValue", averageValue: "1" } },
          },
        ],
      },
      want: [
        "spec.metrics[0].type: Required value: must specify a metric source type",
        'spec.metrics[0].type: Unsupported value: "": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"',
        'spec.metrics[0].type: Unsupported value: "": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"',
        'spec.metrics[1].type: Unsupported value: "Mine": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"',
        'spec.metrics[1].type: Unsupported value: "Mine": supported values: "ContainerResource", "External", "Object", "Pods", "Resource"',
        "spec.metrics[2].pods: Required value: must populate information for the given metric source",
        "spec.metrics[3].resource.name: Required value: must specify a resource name",
        "spec.metrics[3].resource.target.averageUtilization: Required value: must set either a target raw value or a target utilization",
        "spec.metrics[4].pods: Forbidden: must populate the given metric source only",
      ],
    },
    {
      name: "behaviour",
      change: {
        "spec.behavior": {
          scaleUp: { policies: [], selectPolicy: "Most" },
          scaleDown: { stabilizationWindowSeconds: 3601, policies: [{ type: "Mine", value: 0, periodSeconds: 1801 }] },
        },
      },
      want: [
        'spec.behavior.scaleUp.selectPolicy: Unsupported value: "Most": supported values: "Disabled", "Max", "Min"',
        "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy",
        "spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600",
        'spec.behavior.scaleDown.policies[0].type: Unsupported value: "Mine": supported values: "Percent", "Pods"',
        "spec.behavior.scaleDown.policies[0].value: Invalid value: 0: must be greater than zero",
        "spec.behavior.scaleDown.policies[0].periodSeconds: Invalid value: 1801: must be less than or equal to 1800",
      ],
    },
    {
      name: "counts",
      change: { status: { currentReplicas: -1, desiredReplicas: -1 } },
      before: {},
      status: true,
      want: [
        "status.currentReplicas: Invalid value: -1: must be greater than or equal to 0",
        "status.desiredReplicas: Invalid value: -1: must be greater than or equal to 0",
      ],
    },
    {
      name: "a container's resource of no names",
      gates: { HPAContainerMetrics: true },
      change: {
        "spec.metrics": [
          {
            type: "ContainerResource",
            containerResource: { name: "", container: "", target: { type: "Utilization", averageUtilization: 50 } },
          },
        ],
      },
      want: [
        "spec.metrics[0].containerResource.name: Required value: must specify a resource name",
        "spec.metrics[0].containerResource.container: Required value: must specify a container",
      ],
    },
    {
      name: "a container's resource while its gate is off",
      change: {
        "spec.metrics": [
          {
            type: "ContainerResource",
            containerResource: { name: "cpu", container: "c", target: { type: "Utilization", averageUtilization: 50 } },
          },
        ],
      },
      want: [
        "spec.metrics[0].containerResource: Required value: must populate information for the given metric source (only allowed when HPAContainerMetrics feature is enabled)",
      ],
    },
    {
      name: "resources and containers of no such name",
      gates: { HPAContainerMetrics: true },
      change: {
        "spec.metrics": [
          {
            type: "ContainerResource",
            containerResource: { name: "Cpu", container: "a b", target: { type: "Utilization", averageUtilization: 50 } },
          },
          { type: "ContainerResource" },
        ],
      },
      want: [
        'spec.metrics[0].containerResource.name: Invalid value: "Cpu": must be a standard resource type or fully qualified',
        'spec.metrics[0].containerResource.name: Invalid value: "Cpu": must be a standard resource for containers',
        "spec.metrics[0].containerResource.container: Invalid value: \"a b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        "spec.metrics[1].containerResource: Required value: must populate information for the given metric source",
      ],
    },
    {
      name: "pods without a value",
      change: { "spec.metrics": [{ type: "Pods", pods: { metric: { name: "m" }, target: { type: "AverageValue" } } }] },
      want: ["spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target averageValue"],
    },
    {
      name: "pods of a negative value",
      change: {
        "spec.metrics": [
          { type: "Pods", pods: { metric: { name: "a/b" }, target: { type: "AverageValue", averageValue: "-1" } } },
        ],
      },
      want: [
        "spec.metrics[0].pods.metric.name: Invalid value: \"a/b\": may not contain '/'",
        'spec.metrics[0].pods.target.averageValue: Invalid value: resource.Quantity{i:resource.int64Amount{value:-1, scale:0}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"-1", Format:"DecimalSI"}: must be positive',
      ],
    },
    {
      name: "an external metric of two values",
      change: {
        "spec.metrics": [
          { type: "External", external: { metric: { name: "m" }, target: { type: "Value", value: "1", averageValue: "1" } } },
        ],
      },
      want: ["spec.metrics[0].external.target.value: Forbidden: may not set both a target value for metric and a per-pod target"],
    },
    {
      name: "an external metric of no name and value",
      change: { "spec.metrics": [{ type: "External", external: { metric: { name: "" }, target: { type: "" } } }] },
      want: [
        "spec.metrics[0].external.metric.name: Required value: must specify a metric name",
        "spec.metrics[0].external.target.type: Required value: must specify a metric target type",
        'spec.metrics[0].external.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue',
        "spec.metrics[0].external.target.averageValue: Required value: must set either a target value for metric or a per-pod target",
      ],
    },
    {
      name: "an object of a negative value and an unknown type of it",
      change: {
        "spec.metrics": [
          {
            type: "Object",
            object: { describedObject: { kind: "A", name: "a" }, metric: { name: "m" }, target: { type: "Most", value: "-1" } },
          },
        ],
      },
      want: [
        'spec.metrics[0].object.target.type: Invalid value: "Most": must be either Utilization, Value, or AverageValue',
        'spec.metrics[0].object.target.value: Invalid value: resource.Quantity{i:resource.int64Amount{value:-1, scale:0}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"-1", Format:"DecimalSI"}: must be positive',
      ],
    },
    {
      name: "a resource of two targets",
      change: {
        "spec.metrics": [
          {
            type: "Resource",
            resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50, averageValue: "1" } },
          },
        ],
      },
      want: [
        "spec.metrics[0].resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization",
      ],
    },
    {
      name: "a period of no time",
      change: { "spec.behavior": { scaleUp: { policies: [{ type: "Pods", value: 1, periodSeconds: 0 }] } } },
      want: ["spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 0: must be greater than zero"],
    },
    {
      name: "metrics without targets, of things without names",
      gates: { HPAContainerMetrics: true },
      change: {
        "spec.metrics": [
          { type: "ContainerResource", containerResource: { name: "cpu", container: "c", target: {} } },
          {
            type: "Object",
            object: {
              describedObject: { kind: "", name: "a/b" },
              metric: {
                name: "",
                selector: {
                  matchExpressions: [
                    { key: "a b", operator: "In" },
                    { key: "a", operator: "Exists", values: ["b"] },
                    { key: "a", operator: "Like" },
                  ],
                },
              },
              target: { type: "Value", value: "1" },
            },
          },
        ],
      },
      want: [
        "spec.metrics[0].containerResource.target.type: Required value: must specify a metric target type",
        'spec.metrics[0].containerResource.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue',
        "spec.metrics[0].containerResource.target.averageUtilization: Required value: must set either a target raw value or a target utilization",
        "spec.metrics[1].object.describedObject.kind: Required value",
        "spec.metrics[1].object.describedObject.name: Invalid value: \"a/b\": may not contain '/'",
        "spec.metrics[1].object.metric.name: Required value: must specify a metric name",
      ],
    },
    {
      name: "a behavior of one direction without defaults, and not the other one",
      undefaulted: true,
      change: {
        "spec.minReplicas": 1,
        "spec.behavior": { scaleDown: { stabilizationWindowSeconds: 3601, selectPolicy: "Max" } },
      },
      want: [
        "spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600",
        "spec.behavior.scaleDown.policies: Required value: must specify at least one Policy",
      ],
    },
    {
      name: "a window before now",
      change: {
        "spec.behavior": {
          scaleUp: { stabilizationWindowSeconds: -1, policies: [{ type: "Pods", value: 1, periodSeconds: 1 }] },
        },
      },
      want: ["spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero"],
    },
    {
      name: "a resource used by nothing, an object of no value",
      change: {
        "spec.metrics": [
          { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 0 } } },
          {
            type: "Object",
            object: { describedObject: { kind: "A", name: "a" }, metric: { name: "m" }, target: { type: "Value" } },
          },
        ],
      },
      want: [
        "spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0",
        "spec.metrics[1].object.target.averageValue: Required value: must set either a target value or averageValue",
      ],
    },
  ],
);
