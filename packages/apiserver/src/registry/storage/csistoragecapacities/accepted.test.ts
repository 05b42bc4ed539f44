/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "csistoragecapacities.storage.k8s.io";
const notSame = "field is immutable";

testAccepted([
  {
    resource,
    name: "amounts of nothing and more",
    taken: [{ capacity: "0" }, { capacity: "1Gi", maximumVolumeSize: "0" }, { nodeTopology: {} }, { storageClassName: "a.b" }],
    refused: [
      [{ maximumVolumeSize: "-1" }, 'maximumVolumeSize: Invalid value: "-1": must be greater than or equal to 0'],
      [{ storageClassName: "" }, 'storageClassName: Invalid value: ""'],
    ],
  },
  {
    resource,
    name: "other amounts of the same class and place",
    before: { capacity: "1Gi", nodeTopology: { matchLabels: { a: "b" } } },
    taken: [{ capacity: "2Gi" }, { capacity: undefined, maximumVolumeSize: "1" }],
    refused: [
      [{ nodeTopology: undefined }, "nodeTopology: Invalid value"],
      [{ storageClassName: "t" }, `storageClassName: Invalid value: "t": ${notSame}`],
    ],
  },
]);
