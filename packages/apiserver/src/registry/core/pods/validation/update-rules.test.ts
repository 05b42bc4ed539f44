import { testKindRules } from "../../../../testing/kind-rules.ts";

testKindRules("pods", { spec: { containers: [{ name: "c", image: "i" }] } }, [
  { name: "another image", change: { "spec.containers[0].image": "j" }, before: {}, want: [] },
  {
    name: "an image taken away",
    change: { "spec.containers[0].image": "" },
    before: {},
    want: [
      "spec.containers[0].image: Required value",
      "spec.containers[0].image: Required value",
      'spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing tolerations) or `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n\t- containers[0].imagePullPolicy: "IfNotPresent"\n\t+ containers[0].imagePullPolicy: "Always"',
    ],
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
    want: [
      'spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing tolerations) or `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n\t- containers[0].command: ["x"]\n\t+ containers[0].command: nil',
    ],
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
]);
