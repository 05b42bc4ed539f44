import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("nodes", {}, [
  { name: "a node", change: {}, want: [] },
  {
    name: "taints",
    change: {
      "spec.taints": [
        { key: "a b", effect: "NoSchedule" },
        { key: "a", effect: "", value: "c d" },
        { key: "a", effect: "Never" },
        { key: "b", effect: "NoSchedule" },
        { key: "b", effect: "NoSchedule", value: "x" },
      ],
    },
    want: [
      "metadata.taints[0].key: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "metadata.taints[1].value: Invalid value: \"c d\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
      "metadata.taints[1].effect: Required value",
      'metadata.taints[2].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
      'metadata.taints[4]: Duplicate value: core.Taint{Key:"b", Value:"x", Effect:"NoSchedule", TimeAdded:<nil>}: taints must be unique by key and effect pair',
    ],
  },
  {
    name: "addresses of pods",
    change: { "spec.podCIDR": "x", "spec.podCIDRs": ["x"] },
    want: ['spec.podCIDRs[0]: Invalid value: []string{"x"}: must be valid CIDR'],
  },
  {
    name: "two addresses of one family",
    change: { "spec.podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"] },
    want: [
      'spec.podCIDRs: Invalid value: []string{"10.0.0.0/24", "10.0.1.0/24"}: may specify no more than one CIDR for each IP family',
    ],
  },
  { name: "a provider", change: { "spec.providerID": "a" }, want: [] },
  {
    name: "another provider",
    change: { "spec.providerID": "b" },
    before: { "spec.providerID": "a" },
    want: [
      'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
      "[]: Forbidden: node updates may only change labels, taints, or capacity (or configSource, if the DynamicKubeletConfig feature gate is enabled)",
    ],
  },
  {
    name: "other addresses of pods",
    change: { "spec.podCIDRs": ["10.0.1.0/24"], "spec.podCIDR": "10.0.1.0/24" },
    before: { "spec.podCIDRs": ["10.0.0.0/24"], "spec.podCIDR": "10.0.0.0/24" },
    want: [
      'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
      "[]: Forbidden: node updates may only change labels, taints, or capacity (or configSource, if the DynamicKubeletConfig feature gate is enabled)",
    ],
  },
  {
    name: "an address twice",
    change: {
      "status.addresses": [
        { type: "InternalIP", address: "1.1.1.1" },
        { type: "InternalIP", address: "1.1.1.1" },
      ],
    },
    before: {},
    status: true,
    want: ['status.addresses[1]: Duplicate value: core.NodeAddress{Type:"InternalIP", Address:"1.1.1.1"}'],
  },
  {
    name: "negative capacity",
    change: { "status.capacity": { cpu: "-1", "a.com/x": "1500m" } },
    before: {},
    status: true,
    want: [
      'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
      'status.capacity.a.com/x: Invalid value: resource.Quantity{i:resource.int64Amount{value:1500, scale:-3}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"1500m", Format:"DecimalSI"}: must be an integer',
      'status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0',
      'status.allocatable.a.com/x: Invalid value: resource.Quantity{i:resource.int64Amount{value:1500, scale:-3}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"1500m", Format:"DecimalSI"}: must be an integer',
    ],
  },
  {
    name: "pods to avoid",
    change: {
      "metadata.annotations": { "scheduler.alpha.kubernetes.io/preferAvoidPods": '{"preferAvoidPods":[{"podSignature":{}}]}' },
    },
    want: ["metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0].PodSignature: Required value"],
  },
]);
