/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "csinodes.storage.k8s.io";
const driver = (more: object) => ({ "spec.drivers": [{ name: "a", nodeID: "n", ...more }] });

testAccepted([
  {
    resource,
    name: "drivers with keys of topology and a number of volumes",
    taken: [
      driver({ allocatable: { count: 0 }, topologyKeys: ["a", "a.b/c", "A"] }),
      driver({ nodeID: "n".repeat(192), allocatable: {} }),
      {
        "spec.drivers": [
          { name: "a", nodeID: "n" },
          { name: "b", nodeID: "n" },
        ],
      },
    ],
    refused: [[driver({ topologyKeys: ["a", "a"] }), 'spec.drivers[0]: Duplicate value: "a"']],
  },
  {
    resource,
    name: "other drivers beside those that stay, and none of them",
    before: driver({ allocatable: { count: 1 }, topologyKeys: ["a"] }),
    taken: [{}, { "spec.drivers": [] }, { "spec.drivers[1]": { name: "b", nodeID: "m" } }],
    refused: [
      [{ "spec.drivers[0].allocatable.count": 2 }, `CSINodeDriver: Invalid value: storage.CSINodeDriver{Name:"a"`],
      [{ "spec.drivers[0].nodeID": "m" }, `CSINodeDriver: Invalid value: storage.CSINodeDriver{Name:"a"`],
      [{ "spec.drivers[0].topologyKeys": ["b"] }, `CSINodeDriver: Invalid value: storage.CSINodeDriver{Name:"a"`],
    ],
  },
]);
