import { testKindRules } from "../../../../testing/kind-rules.ts";

const notUpdatable =
  "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing tolerations) or `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

testKindRules("pods", { spec: { containers: [{ name: "c", image: "i" }] } }, [
  { name: "another image", change: { "spec.containers[0].image": "j" }, before: {}, want: [] },
  {
    name: "an image taken away",
    change: { "spec.containers[0].image": "" },
    before: {},
    want: ["spec.containers[0].image: Required value", "spec.containers[0].image: Required value", notUpdatable],
  },
  {
    name: "a container more",
    change: { "spec.containers[1]": { name: "d", image: "i" } },
    before: {},
    want: ["spec.containers: Forbidden: pod updates may not add or remove containers"],
  },
  {
    name: "another command",
    change: { "spec.containers[0].command": ["x"] },
    before: {},
    want: [notUpdatable],
  },
  {
    name: "a shorter deadline",
    change: { "spec.activeDeadlineSeconds": 5 },
    before: { "spec.activeDeadlineSeconds": 6 },
    want: [],
  },
  {
    name: "a longer deadline",
    change: { "spec.activeDeadlineSeconds": 7 },
    before: { "spec.activeDeadlineSeconds": 6 },
    want: ["spec.activeDeadlineSeconds: Invalid value: 7: must be less than or equal to previous value"],
  },
  {
    name: "a deadline taken away",
    change: { "spec.activeDeadlineSeconds": undefined },
    before: { "spec.activeDeadlineSeconds": 6 },
    want: ['spec.activeDeadlineSeconds: Invalid value: "null": must not update from a positive integer to nil value'],
  },
  { name: "a toleration more", change: { "spec.tolerations": [{ key: "a", operator: "Exists" }] }, before: {}, want: [] },
  {
    name: "a toleration less",
    change: { "spec.tolerations": [] },
    before: { "spec.tolerations": [{ key: "a", operator: "Exists" }] },
    want: ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
  },
  {
    name: "to delete it by the way",
    change: { "metadata.deletionTimestamp": "2022-01-01T00:00:00Z", "metadata.deletionGracePeriodSeconds": 3 },
    before: {},
    want: [
      "metadata.deletionTimestamp: Invalid value: 2022-01-01 00:00:00 +0000 UTC: field is immutable",
      "metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable",
    ],
  },
  {
    name: "more time for a deletion that has begun",
    change: { "metadata.deletionTimestamp": undefined, "metadata.deletionGracePeriodSeconds": 60 },
    before: { "metadata.deletionTimestamp": "2022-01-01T00:00:00Z", "metadata.deletionGracePeriodSeconds": 3 },
    want: ["metadata.deletionGracePeriodSeconds: Invalid value: 60: field is immutable"],
  },
  {
    name: "another name, uid, namespace and creation",
    change: { "metadata.name": "other", "metadata.uid": "2" },
    before: {},
    want: ['metadata.name: Invalid value: "other": field is immutable', 'metadata.uid: Invalid value: "2": field is immutable'],
  },
  {
    name: "another node in its status",
    change: { "spec.nodeName": "b" },
    before: { "spec.nodeName": "a" },
    status: true,
    want: [],
  },
  {
    name: "a container that starts again",
    change: {
      "status.containerStatuses": [{ name: "c", image: "i", imageID: "", ready: false, restartCount: 0, state: { running: {} } }],
    },
    before: {
      "spec.restartPolicy": "Never",
      "status.containerStatuses": [
        { name: "c", image: "i", imageID: "", ready: false, restartCount: 0, state: { terminated: { exitCode: 0 } } },
      ],
    },
    status: true,
    want: ["status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"],
  },
  {
    name: "a nominated node of a bad name",
    change: { "status.nominatedNodeName": "_" },
    before: {},
    status: true,
    want: [
      "status.nominatedNodeName: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  },
  {
    name: "a first deadline of the most seconds",
    before: {},
    change: { "spec.activeDeadlineSeconds": 2 ** 31 - 1 },
    want: [],
  },
  {
    name: "a first deadline of a second more",
    before: {},
    change: { "spec.activeDeadlineSeconds": 2 ** 31 },
    want: [
      "spec.activeDeadlineSeconds: Invalid value: 2147483648: must be between 1 and 2147483647, inclusive",
      "spec.activeDeadlineSeconds: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive",
    ],
  },
  {
    name: "a deadline below nothing",
    before: { "spec.activeDeadlineSeconds": 5 },
    change: { "spec.activeDeadlineSeconds": -1 },
    want: [
      "spec.activeDeadlineSeconds: Invalid value: -1: must be between 1 and 2147483647, inclusive",
      "spec.activeDeadlineSeconds: Invalid value: -1: must be between 0 and 2147483647, inclusive",
    ],
  },
  ...[{ key: "b" }, { value: "b" }, { operator: "Exists", value: "" }, { effect: "NoExecute" }].map((other) => ({
    name: `a toleration with ${JSON.stringify(other)}`,
    before: { "spec.tolerations": [{ key: "a", operator: "Equal", value: "a", effect: "NoSchedule" }] },
    change: { "spec.tolerations": [{ key: "a", operator: "Equal", value: "a", effect: "NoSchedule", ...other }] },
    want: ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
  })),
  {
    name: "a strange toleration more",
    before: {},
    change: { "spec.tolerations": [{ key: "a b", operator: "Exists" }] },
    want: [
      "spec.tolerations[0].key: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "spec.tolerations[0].key: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "another AppArmor profile, and one more",
    before: { "metadata.annotations": { "container.apparmor.security.beta.kubernetes.io/c": "unconfined" } },
    change: {
      "metadata.annotations": {
        "container.apparmor.security.beta.kubernetes.io/c": "runtime/default",
        "container.apparmor.security.beta.kubernetes.io/d": "unconfined",
      },
    },
    want: [
      'metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: "d": container not found',
      "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Forbidden: may not remove or update AppArmor annotations",
      "metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]: Forbidden: may not add AppArmor annotations",
      'metadata.annotations[container.apparmor.security.beta.kubernetes.io/d]: Invalid value: "d": container not found',
    ],
  },
  {
    name: "a mark of a mirror",
    before: {},
    change: { "metadata.annotations": { "kubernetes.io/config.mirror": "x" } },
    want: [
      'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set',
      "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation",
      'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set',
    ],
  },
  {
    name: "no mark of a mirror any more",
    before: { "metadata.annotations": { "kubernetes.io/config.mirror": "x" }, "spec.nodeName": "n" },
    change: { "metadata.annotations": {} },
    want: ["metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not remove or update mirror pod annotation"],
  },
  {
    name: "another node in the status",
    status: true,
    before: { "spec.nodeName": "n" },
    change: { "status.nominatedNodeName": "_" },
    want: [
      "status.nominatedNodeName: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  },
  {
    name: "a condition of a strange type",
    status: true,
    before: {},
    change: { "status.conditions": [{ type: "a b", status: "True" }] },
    want: [
      "metadata.conditions[0].Type: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "an address that is none",
    status: true,
    before: {},
    change: { "status.podIP": "x", "status.podIPs": [{ ip: "x" }, { ip: "1.1.1.1" }] },
    want: [
      'status.podIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
      "status.podIPs: Internal error: failed to check for dual stack with error:invalid IP address: x",
      'status.podIPs: Invalid value: []core.PodIP{core.PodIP{IP:"x"}, core.PodIP{IP:"1.1.1.1"}}: may specify no more than one IP for each IP family',
    ],
  },
  {
    name: "three addresses, of which one twice",
    status: true,
    before: {},
    change: { "status.podIP": "1.1.1.1", "status.podIPs": [{ ip: "1.1.1.1" }, { ip: "fd00::1" }, { ip: "1.1.1.1" }] },
    want: [
      'status.podIPs: Invalid value: []core.PodIP{core.PodIP{IP:"1.1.1.1"}, core.PodIP{IP:"fd00::1"}, core.PodIP{IP:"1.1.1.1"}}: may specify no more than one IP for each IP family',
      'status.podIPs[2]: Duplicate value: core.PodIP{IP:"1.1.1.1"}',
    ],
  },
  {
    name: "an image of spaces",
    before: {},
    change: { "spec.containers[0].image": "j ", "spec.containers[0].imagePullPolicy": "Always" },
    want: [
      'spec.containers[0].image: Invalid value: "j ": must not have leading or trailing whitespace',
      'spec.containers[0].image: Invalid value: "j ": must not have leading or trailing whitespace',
    ],
  },
  {
    name: "an annotation of seccomp for a container changed",
    before: { "metadata.annotations": { "seccomp.security.alpha.kubernetes.io/pod": "runtime/default" } },
    change: {
      "metadata.annotations": { "seccomp.security.alpha.kubernetes.io/pod": "unconfined", "kubernetes.io/config.mirror": "x" },
    },
    want: [
      'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set',
      "metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not add mirror pod annotation",
      'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set',
    ],
  },
  {
    name: "the same deadline and another image of an init container",
    before: { "spec.activeDeadlineSeconds": 6, "spec.initContainers": [{ name: "a", image: "i" }] },
    change: { "spec.initContainers[0].image": "j" },
    want: [],
  },
  {
    name: "an image of an init container taken away",
    before: { "spec.initContainers": [{ name: "a", image: "i", imagePullPolicy: "Always" }] },
    change: { "spec.initContainers[0].image": "" },
    want: ["spec.initContainers[0].image: Required value", "spec.initContainers[0].image: Required value"],
  },
  {
    name: "a grace period of one second instead of a negative one",
    before: { "spec.terminationGracePeriodSeconds": -1 },
    change: { "spec.terminationGracePeriodSeconds": 1 },
    want: [],
  },
  ...[
    [-1, 2],
    [0, 1],
    [30, 1],
  ].map(([old, next]) => ({
    name: `a grace period of ${next} instead of ${old}`,
    before: { "spec.terminationGracePeriodSeconds": old },
    change: { "spec.terminationGracePeriodSeconds": next },
    want: [notUpdatable],
  })),
  {
    name: "another time of a toleration, and tolerations before it",
    before: { "spec.tolerations": [{ key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: 5 }] },
    change: {
      "spec.tolerations": [
        { key: "b", operator: "Exists" },
        { key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: 6 },
      ],
    },
    want: [],
  },
  ...[{ key: "b" }, { operator: "Equal" }, { value: "w", operator: "Equal" }, { effect: "NoSchedule" }].map((change) => ({
    name: `a toleration with another ${Object.keys(change)[0]}`,
    before: { "spec.tolerations": [{ key: "a", operator: "Exists", effect: "NoExecute" }] },
    change: { "spec.tolerations": [{ key: "a", operator: "Exists", effect: "NoExecute", ...change }] },
    want: ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
  })),
  {
    name: "another value of the mark of a mirror",
    before: { "metadata.annotations": { "kubernetes.io/config.mirror": "x" }, "spec.nodeName": "n" },
    change: { "metadata.annotations": { "kubernetes.io/config.mirror": "y" } },
    want: ["metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not remove or update mirror pod annotation"],
  },
  {
    name: "no AppArmor profile any more",
    before: { "metadata.annotations": { "container.apparmor.security.beta.kubernetes.io/c": "unconfined" } },
    change: { "metadata.annotations": {} },
    want: [
      "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Forbidden: may not remove or update AppArmor annotations",
    ],
  },
  {
    name: "a nominated node of a bad name, as before, and conditions of its own and of others",
    status: true,
    before: { "status.nominatedNodeName": "_" },
    change: {
      "status.conditions": ["PodScheduled", "Ready", "Initialized", "ContainersReady", "example.com/own"].map((type) => ({
        type,
        status: "True",
      })),
    },
    want: [],
  },
  {
    name: "an address of each family",
    status: true,
    before: {},
    change: { "status.podIPs": [{ ip: "fd00::1" }, { ip: "10.0.0.1" }] },
    want: [],
  },
  {
    name: "two addresses of one family",
    status: true,
    before: {},
    change: { "status.podIPs": [{ ip: "10.0.0.1" }, { ip: "10.0.0.2" }] },
    want: [
      'status.podIPs: Invalid value: []core.PodIP{core.PodIP{IP:"10.0.0.1"}, core.PodIP{IP:"10.0.0.2"}}: may specify no more than one IP for each IP family',
    ],
  },
  {
    name: "a first AppArmor profile, an empty one",
    before: {},
    change: { "metadata.annotations": { "container.apparmor.security.beta.kubernetes.io/c": "" } },
    want: ["metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: Forbidden: may not add AppArmor annotations"],
  },
  {
    name: "no nominated node any more",
    status: true,
    before: { "status.nominatedNodeName": "n" },
    change: { "status.nominatedNodeName": "" },
    want: [],
  },
]);
