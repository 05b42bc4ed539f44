/** Rules that hold for each container, port or volume, not for the first one alone. */
import { testKindRules } from "../../../../testing/kind-rules.ts";

const podUpdate =
  "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing tolerations) or `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

testKindRules("pods", { spec: { containers: [{ name: "c", image: "i" }] } }, [
  {
    name: "two init containers of one name",
    change: {
      "spec.initContainers": [
        { name: "a", image: "i" },
        { name: "a", image: "i" },
      ],
    },
    want: ['spec.initContainers[1].name: Duplicate value: "a"', 'spec.initContainers[1].name: Duplicate value: "a"'],
  },
  {
    name: "ephemeral containers of an init container's name and of one name",
    before: { "spec.initContainers": [{ name: "a", image: "i" }] },
    change: {
      "spec.ephemeralContainers": [
        { name: "a", image: "i" },
        { name: "d", image: "i" },
        { name: "d", image: "i" },
      ],
    },
    want: [
      'spec.ephemeralContainers[0].name: Duplicate value: "a"',
      'spec.ephemeralContainers[2].name: Duplicate value: "d"',
      podUpdate,
    ],
  },
  {
    name: "an ephemeral container that targets the one after it, but not one that targets the one before it",
    before: {},
    change: {
      "spec.ephemeralContainers": [
        { name: "d", image: "i", targetContainerName: "e" },
        { name: "e", image: "i", targetContainerName: "d" },
      ],
    },
    want: ['spec.ephemeralContainers[0].targetContainerName: Not found: "e"', podUpdate],
  },
  {
    name: "one host port at two addresses",
    change: {
      "spec.containers[0].ports": [
        { containerPort: 1, hostPort: 1, hostIP: "10.0.0.1" },
        { containerPort: 1, hostPort: 1, hostIP: "10.0.0.2" },
      ],
    },
    want: [],
  },
  {
    name: "one host port of two containers",
    change: {
      "spec.containers[0].ports": [{ containerPort: 1, hostPort: 1 }],
      "spec.containers[1]": { name: "d", image: "i", ports: [{ containerPort: 2, hostPort: 1 }] },
    },
    want: ['spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//1"'],
  },
  {
    name: "a host port that is not the second container's port, on the host network",
    change: {
      "spec.hostNetwork": true,
      "spec.containers[1]": { name: "d", image: "i", ports: [{ containerPort: 2, hostPort: 3 }] },
    },
    want: ["spec.containers[1].ports[0].containerPort: Invalid value: 2: must match `hostPort` when `hostNetwork` is true"],
  },
  {
    name: "a sysctl once with slashes and once with dots, and a wrong second group",
    change: {
      "spec.securityContext": {
        supplementalGroups: [1, -1],
        sysctls: [
          { name: "net/ipv4/tcp_syncookies", value: "1" },
          { name: "net.ipv4.tcp_syncookies", value: "1" },
        ],
      },
    },
    want: [
      "spec.securityContext.supplementalGroups[1]: Invalid value: -1: must be between 0 and 2147483647, inclusive",
      'spec.securityContext.sysctls[1].name: Duplicate value: "net.ipv4.tcp_syncookies"',
    ],
  },
  {
    name: "a user of Windows of as many characters as are allowed",
    change: { "spec.securityContext": { windowsOptions: { runAsUserName: "u".repeat(104) } } },
    want: [],
  },
  {
    name: "a user of Windows of one character too many",
    change: { "spec.securityContext": { windowsOptions: { runAsUserName: "u".repeat(105) } } },
    want: [
      `spec.securityContext.windowsOptions.runAsUserName: Invalid value: "${"u".repeat(105)}": runAsUserName's User length must not be longer than 104 characters`,
    ],
  },
]);

const [kept, removed] = ["a", "b"].map((key) => ({ key, operator: "Exists" }));
testKindRules("pods", { spec: { containers: [{ name: "c", image: "i" }] } }, [
  {
    name: "the second toleration less",
    before: { "spec.tolerations": [kept, removed] },
    change: { "spec.tolerations": [kept] },
    want: ["spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"],
  },
  {
    name: "an init container more",
    before: {},
    change: { "spec.initContainers": [{ name: "a", image: "i" }] },
    want: ["spec.initContainers: Forbidden: pod updates may not add or remove containers"],
  },
  {
    name: "part of a huge page where an init container has one",
    before: {
      "spec.initContainers": [{ name: "a", image: "i", resources: { limits: { cpu: "1", "hugepages-2Mi": "3Mi" } } }],
    },
    change: { "metadata.labels": { a: "b" } },
    want: [],
  },
  {
    name: "an account's token in the second volume without an account",
    change: {
      "spec.serviceAccountName": undefined,
      "spec.volumes": [
        { name: "v", emptyDir: {} },
        { name: "w", projected: { sources: [{ serviceAccountToken: { path: "t", expirationSeconds: 600 } }] } },
      ],
    },
    want: [
      "spec.volumes[1].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set",
    ],
  },
]);

const labels = { a: "b" };
testKindRules(
  "deployments.apps",
  {
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "c", image: "i" }] } },
    },
  },
  [0, 5].map((deadline) => ({
    name: `a template whose pods end after ${deadline} s`,
    change: { "spec.template.spec.activeDeadlineSeconds": deadline },
    want: [
      ...(deadline === 0
        ? ["spec.template.spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"]
        : []),
      "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported",
    ],
  })),
);
