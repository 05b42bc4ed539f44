/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "runtimeclasses.node.k8s.io";
const toleration = { key: "a", operator: "Exists" };
const tolerations = (...list: object[]) => ({ "scheduling.tolerations": list });

testAccepted([
  {
    resource,
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
    resource,
    name: "other overhead and places of the same handler",
    before: { overhead: { podFixed: { cpu: "1" } } },
    taken: [{ overhead: { podFixed: { cpu: "2" } } }, { overhead: undefined }, tolerations(toleration)],
    refused: [[{ handler: "i" }, 'handler: Invalid value: "i": field is immutable']],
  },
]);
