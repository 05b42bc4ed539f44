import { testKindRules } from "../../../testing/kind-rules.ts";

const onlyChangeable =
  "[]: Forbidden: node updates may only change labels, taints, or capacity (or configSource, if the DynamicKubeletConfig feature gate is enabled)";

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
    want: ['spec.providerID: Forbidden: node updates may not change providerID except from "" to valid', onlyChangeable],
  },
  {
    name: "other addresses of pods",
    change: { "spec.podCIDRs": ["10.0.1.0/24"], "spec.podCIDR": "10.0.1.0/24" },
    before: { "spec.podCIDRs": ["10.0.0.0/24"], "spec.podCIDR": "10.0.0.0/24" },
    want: ['spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid', onlyChangeable],
  },
  {
    name: "an address twice",
    change: {
      "status.addresses": [
        { type: "InternalIP", address: "1.1.1.1" },
        { type: "ExternalIP", address: "1.1.1.1" },
        { type: "InternalIP", address: "1.1.1.1" },
      ],
    },
    before: {},
    status: true,
    want: ['status.addresses[2]: Duplicate value: core.NodeAddress{Type:"InternalIP", Address:"1.1.1.1"}'],
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
  {
    name: "taints of the annotation",
    change: { "metadata.annotations": { "scheduler.alpha.kubernetes.io/taints": '[{"key":"a","effect":"Never"}]' } },
    want: [
      'metadata.annotations.scheduler.alpha.kubernetes.io/taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ],
  },
  {
    name: "pods to avoid without a controller",
    change: {
      "metadata.annotations": {
        "scheduler.alpha.kubernetes.io/preferAvoidPods":
          '{"preferAvoidPods":[{"podSignature":{"podController":{"apiVersion":"v1","kind":"A","name":"a","uid":"1","controller":false}}}]}',
      },
    },
    want: [
      "metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0].PodSignature.PodController.Controller: Invalid value: false: must point to a controller",
    ],
  },
  {
    name: "one range of pods twice",
    change: { "spec.podCIDR": "10.0.0.0/24", "spec.podCIDRs": ["10.0.0.0/24", "10.0.0.0/24"] },
    want: [
      'spec.podCIDRs: Invalid value: []string{"10.0.0.0/24", "10.0.0.0/24"}: may specify no more than one CIDR for each IP family',
      'spec.podCIDRs[1]: Duplicate value: "10.0.0.0/24"',
    ],
  },
  {
    name: "a range of pods that is none, of two",
    change: { "spec.podCIDR": "10.0.0.0/24", "spec.podCIDRs": ["10.0.0.0/24", "x"] },
    want: [
      'spec.podCIDRs[1]: Invalid value: []string{"10.0.0.0/24", "x"}: must be valid CIDR',
      'spec.podCIDRs: Internal error: invalid PodCIDRs. failed to check with dual stack with error:failed to parse cidr value:"x" with error:invalid CIDR address: x',
      'spec.podCIDRs: Invalid value: []string{"10.0.0.0/24", "x"}: may specify no more than one CIDR for each IP family',
    ],
  },
  {
    name: "a source of configuration",
    before: {},
    gates: { DynamicKubeletConfig: true },
    change: {
      "spec.configSource": { configMap: { name: "", namespace: "a_b", uid: "1", resourceVersion: "1", kubeletConfigKey: "/" } },
    },
    want: [
      "spec.configSource.configMap.uid: Forbidden: uid must not be set in spec",
      "spec.configSource.configMap.resourceVersion: Forbidden: resourceVersion must not be set in spec",
      "spec.configSource.configMap.namespace: Invalid value: \"a_b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      "spec.configSource.configMap.name: Required value: name must be set",
      "spec.configSource.configMap.kubeletConfigKey: Invalid value: \"/\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    ],
  },
  {
    name: "a source of no configuration where there was one, with the gate off",
    before: { "spec.configSource": { configMap: { name: "a", namespace: "b", kubeletConfigKey: "c" } } },
    change: { "spec.configSource": {} },
    want: [
      "spec.configSource: Invalid value: core.NodeConfigSource{ConfigMap:(*core.ConfigMapNodeConfigSource)(nil)}: exactly one reference subfield must be non-nil",
    ],
  },
  {
    name: "a source of no configuration",
    before: {},
    gates: { DynamicKubeletConfig: true },
    change: { "spec.configSource": {} },
    want: [
      "spec.configSource: Invalid value: core.NodeConfigSource{ConfigMap:(*core.ConfigMapNodeConfigSource)(nil)}: exactly one reference subfield must be non-nil",
    ],
  },
  {
    name: "a configuration in use",
    before: {},
    status: true,
    gates: { DynamicKubeletConfig: true },
    change: { "status.config": { active: { configMap: { name: "a", namespace: "b", kubeletConfigKey: "c" } } } },
    want: [
      "status.config.active.configMap.uid: Required value: uid must be set in status",
      "status.config.active.configMap.resourceVersion: Required value: resourceVersion must be set in status",
    ],
  },
  {
    name: "annotations that are no JSON",
    change: { "metadata.annotations": { "scheduler.alpha.kubernetes.io/taints": "[" } },
    want: ['metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/taints": unexpected end of JSON input'],
  },
  {
    name: "annotations of nulls, of which Go makes nothing",
    change: {
      "metadata.annotations": {
        "scheduler.alpha.kubernetes.io/taints": "[null]",
        "scheduler.alpha.kubernetes.io/preferAvoidPods": "null",
      },
    },
    want: [
      'metadata.annotations.scheduler.alpha.kubernetes.io/taints[0].key: Invalid value: "": name part must be non-empty',
      "metadata.annotations.scheduler.alpha.kubernetes.io/taints[0].key: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "metadata.annotations.scheduler.alpha.kubernetes.io/taints[0].effect: Required value",
    ],
  },
  {
    name: "an annotation of taints of other types",
    change: {
      "metadata.annotations": {
        "scheduler.alpha.kubernetes.io/taints": '[{"key":1}]',
        "scheduler.alpha.kubernetes.io/preferAvoidPods": '{"preferAvoidPods":{}}',
      },
    },
    want: [
      'metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/taints": json: cannot unmarshal number into Go struct field Taint.key of type string',
      'metadata.annotations.AvoidPods: Invalid value: "scheduler.alpha.kubernetes.io/preferAvoidPods": json: cannot unmarshal object into Go struct field AvoidPods.preferAvoidPods of type []v1.PreferAvoidPodsEntry',
    ],
  },
  {
    name: "an annotation of taints that is no list, and a capacity that is none",
    change: {
      "metadata.annotations": {
        "scheduler.alpha.kubernetes.io/taints": "1",
        "scheduler.alpha.kubernetes.io/preferAvoidPods": "[]",
      },
      "status.capacity": { cpu: "-1" },
    },
    want: [
      'metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/taints": json: cannot unmarshal number into Go value of type []core.Taint',
      'metadata.annotations.AvoidPods: Invalid value: "scheduler.alpha.kubernetes.io/preferAvoidPods": json: cannot unmarshal array into Go value of type v1.AvoidPods',
      'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
      'status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0',
    ],
  },
  {
    name: "the same, and a taint of no key",
    before: {},
    change: {
      "metadata.annotations": { "scheduler.alpha.kubernetes.io/taints": "1" },
      "spec.taints": [{ key: "a b", effect: "NoSchedule" }],
    },
    want: [
      // The update validation includes that of a create, hence the repeated error.
      'metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/taints": json: cannot unmarshal number into Go value of type []core.Taint',
      "metadata.taints[0].key: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'metadata.annotations: Invalid value: "scheduler.alpha.kubernetes.io/taints": json: cannot unmarshal number into Go value of type []core.Taint',
      "metadata.taints[0].key: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "one key with each effect, and one effect with two keys",
    change: {
      "spec.taints": [
        ...["NoSchedule", "PreferNoSchedule", "NoExecute"].map((effect) => ({ key: "a", value: "", effect })),
        { key: "b", effect: "NoSchedule" },
      ],
    },
    want: [],
  },
  {
    name: "pods to avoid of a controller",
    change: {
      "metadata.annotations": {
        "scheduler.alpha.kubernetes.io/preferAvoidPods":
          '{"preferAvoidPods":[{"podSignature":{"podController":{"apiVersion":"v1","kind":"A","name":"a","uid":"1","controller":true}}}]}',
      },
    },
    want: [],
  },
  {
    name: "what may change: taints, being unschedulable, labels and a first range of pods and provider",
    before: { "spec.taints": [{ key: "a", effect: "NoSchedule" }] },
    change: {
      "spec.taints": [{ key: "b", effect: "NoExecute" }],
      "spec.unschedulable": true,
      "spec.podCIDRs": ["10.0.0.0/24", "fd00::/64"],
      "spec.providerID": "p",
      "metadata.labels": { a: "b" },
    },
    want: [],
  },
  {
    name: "being schedulable again, with the ranges of pods and the provider as before",
    before: { "spec.unschedulable": true, "spec.podCIDRs": ["10.0.0.0/24"], "spec.providerID": "p" },
    change: { "spec.unschedulable": undefined },
    want: [],
  },
  {
    name: "a second range of pods later",
    before: { "spec.podCIDRs": ["10.0.0.0/24"] },
    change: { "spec.podCIDRs": ["10.0.0.0/24", "fd00::/64"] },
    want: ['spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid', onlyChangeable],
  },
  {
    name: "the former external ID",
    before: { "spec.externalID": "a" },
    change: { "spec.externalID": "b" },
    want: [onlyChangeable],
  },
  {
    name: "a negative amount of what is allocatable alone",
    before: {},
    status: true,
    change: { "status.capacity": { cpu: "1" }, "status.allocatable": { cpu: "-1" } },
    want: ['status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0'],
  },
  {
    name: "a source of configuration by a key with capitals",
    before: {},
    gates: { DynamicKubeletConfig: true },
    change: { "spec.configSource": { configMap: { name: "a.b", namespace: "c", kubeletConfigKey: "Kubelet_config" } } },
    want: [],
  },
  {
    name: "a source of configuration of a version, without uid",
    before: {},
    gates: { DynamicKubeletConfig: true },
    change: { "spec.configSource": { configMap: { name: "a", namespace: "c", kubeletConfigKey: "k", resourceVersion: "1" } } },
    want: ["spec.configSource.configMap.resourceVersion: Forbidden: resourceVersion must not be set in spec"],
  },
  {
    name: "three ranges of pods of both families",
    change: { "spec.podCIDRs": ["10.0.0.0/24", "fd00::/64", "10.0.1.0/24"] },
    want: [
      'spec.podCIDRs: Invalid value: []string{"10.0.0.0/24", "fd00::/64", "10.0.1.0/24"}: may specify no more than one CIDR for each IP family',
    ],
  },
  {
    name: "neither ranges of pods nor a provider any more",
    before: { "spec.podCIDRs": ["10.0.0.0/24"], "spec.providerID": "p" },
    change: { "spec.podCIDRs": undefined, "spec.podCIDR": undefined, "spec.providerID": undefined },
    want: [
      'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
      'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
      onlyChangeable,
    ],
  },
  {
    name: "no source of configuration any more",
    before: { "spec.configSource": { configMap: { name: "a", namespace: "c", kubeletConfigKey: "k" } } },
    change: { "spec.configSource": undefined },
    want: [],
  },
  {
    name: "configurations that were assigned and that worked last, which are none",
    before: {},
    status: true,
    gates: { DynamicKubeletConfig: true },
    change: {
      "status.config": {
        assigned: { configMap: { name: "a", namespace: "b", kubeletConfigKey: "c", uid: "1", resourceVersion: "1" } },
        active: {},
        lastKnownGood: { configMap: { name: "a", namespace: "", kubeletConfigKey: "", uid: "1", resourceVersion: "1" } },
      },
    },
    want: [
      "status.config.active: Invalid value: core.NodeConfigSource{ConfigMap:(*core.ConfigMapNodeConfigSource)(nil)}: exactly one reference subfield must be non-nil",
      "status.config.lastKnownGood.configMap.namespace: Required value: namespace must be set",
      "status.config.lastKnownGood.configMap.kubeletConfigKey: Required value: kubeletConfigKey must be set",
    ],
  },
]);
