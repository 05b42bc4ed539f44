/** What priority classes, runtime classes and leases may say and change: values next to those that their rules see refused. */
import { testAccepted } from "../../testing/accepted.ts";

const [priorities, runtimes, leases] = [
  "priorityclasses.scheduling.k8s.io",
  "runtimeclasses.node.k8s.io",
  "leases.coordination.k8s.io",
] as const;
const reserved = "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error:";
const toleration = { key: "a", operator: "Exists" };
const tolerations = (...list: object[]) => ({ "scheduling.tolerations": list });

testAccepted([
  {
    resource: priorities,
    name: "values and policies",
    taken: [
      { value: 0 },
      { value: 1_000_000_000 },
      { value: -(2 ** 31) },
      ...["PreemptLowerPriority", "Never"].map((preemptionPolicy) => ({ preemptionPolicy })),
      { globalDefault: true },
      { "metadata.name": "systems", value: 1 },
    ],
    refused: [
      [{ value: 1_000_000_001 }, "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
      [{ preemptionPolicy: "" }, "preemptionPolicy: Required value"],
    ],
  },
  {
    resource: priorities,
    name: "the classes of the system with their values",
    taken: [
      { "metadata.name": "system-node-critical", value: 2_000_001_000 },
      { "metadata.name": "system-cluster-critical", value: 2_000_000_000 },
    ],
    refused: [
      [
        { "metadata.name": "system-node-critical", value: 2_000_000_000 },
        `${reserved} value of system-node-critical PriorityClass must be 2000001000`,
      ],
      [
        { "metadata.name": "system-other", value: 2_000_000_000 },
        `${reserved} system-other is not a known system priority class`,
      ],
      [
        { "metadata.name": "system-cluster-critical", value: 2_000_000_000, globalDefault: true },
        `${reserved} globalDefault of system-cluster-critical PriorityClass must be false`,
      ],
    ],
  },
  {
    resource: priorities,
    name: "of a class its description and whether it is the default",
    before: {},
    taken: [{ description: "d" }, { globalDefault: true }],
    refused: [
      [{ value: 6 }, "value: Forbidden: may not be changed in an update."],
      [{ value: undefined }, "value: Forbidden: may not be changed in an update."],
      [{ preemptionPolicy: "Never" }, 'preemptionPolicy: Invalid value: "Never": field is immutable'],
    ],
  },
  {
    resource: runtimes,
    name: "handlers, overhead and places",
    taken: [
      { handler: "a".repeat(63) },
      { overhead: { podFixed: { cpu: "0", memory: "1Gi" } } },
      { "scheduling.nodeSelector": { "a.b/c": "" } },
      tolerations(toleration, { ...toleration, effect: "NoExecute" }, { ...toleration, key: "b" }),
    ],
    refused: [
      [{ handler: "a".repeat(64) }, `handler: Invalid value: "${"a".repeat(64)}": must be no more than 63 characters`],
      [{ handler: "a.b" }, 'handler: Invalid value: "a.b": a lowercase RFC 1123 label'],
      [
        tolerations(toleration, { ...toleration, key: "b" }, toleration),
        "scheduling.tolerations[2]: Duplicate value: core.Toleration{",
      ],
    ],
  },
  {
    resource: runtimes,
    name: "other overhead and places of the same handler",
    before: { overhead: { podFixed: { cpu: "1" } } },
    taken: [{ overhead: { podFixed: { cpu: "2" } } }, { overhead: undefined }, tolerations(toleration)],
    refused: [[{ handler: "i" }, 'handler: Invalid value: "i": field is immutable']],
  },
  {
    resource: leases,
    name: "numbers",
    taken: [{ "spec.leaseDurationSeconds": 1, "spec.leaseTransitions": 0 }, { "spec.holderIdentity": "" }],
    refused: [
      [{ "spec.leaseDurationSeconds": 0 }, "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
      [{ "spec.leaseTransitions": -1 }, "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"],
    ],
  },
  {
    resource: leases,
    name: "numbers that become less",
    before: { "spec.leaseDurationSeconds": 9, "spec.leaseTransitions": 9 },
    taken: [{ "spec.leaseDurationSeconds": 1, "spec.leaseTransitions": 0 }],
    refused: [[{ "spec.leaseTransitions": -1 }, "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"]],
  },
]);
