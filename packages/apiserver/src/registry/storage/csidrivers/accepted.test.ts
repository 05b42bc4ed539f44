/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "csidrivers.storage.k8s.io";
const tokens = (...tokenRequests: object[]) => ({ "spec.tokenRequests": tokenRequests });
const lasting = (expirationSeconds: number) => tokens({ audience: "a", expirationSeconds });
const notSame = "field is immutable";

testAccepted([
  {
    resource,
    name: "names of drivers",
    taken: [{ "metadata.name": "a".repeat(63) }, { "metadata.name": "a.b-c.d" }],
    refused: [[{ "metadata.name": "a".repeat(64) }, "name: Too long: must have at most 63 bytes"]],
  },
  {
    resource,
    name: "policies, modes and tokens",
    taken: [
      ...["File", "None", "ReadWriteOnceWithFSType"].map((policy) => ({ "spec.fsGroupPolicy": policy })),
      { "spec.volumeLifecycleModes": ["Persistent", "Ephemeral"] },
      { "spec.attachRequired": false, "spec.podInfoOnMount": true, "spec.storageCapacity": true, "spec.requiresRepublish": true },
      lasting(600),
      lasting(2 ** 32),
      tokens({ audience: "" }, { audience: "a" }),
    ],
    refused: [
      [
        lasting(599),
        "spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
      ],
      [
        lasting(2 ** 32 + 1),
        "spec.tokenRequests[0].expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32",
      ],
      [tokens({ audience: "a" }, {}, { audience: "" }), 'spec.tokenRequests[2].audience: Duplicate value: ""'],
      [
        { "spec.volumeLifecycleModes": ["Persistent", "Own"] },
        'spec.volumeLifecycleModes: Unsupported value: "Own": supported values: "Persistent", "Ephemeral"',
      ],
      [{ "spec.fsGroupPolicy": "" }, 'spec.fsGroupPolicy: Unsupported value: ""'],
    ],
  },
  {
    resource,
    name: "of a driver its capacity, tokens and republishing",
    before: {},
    taken: [{ "spec.storageCapacity": true }, lasting(600), { "spec.requiresRepublish": true }],
    refused: [
      [{ "spec.attachRequired": false }, `spec.attachedRequired: Invalid value: false: ${notSame}`],
      [{ "spec.podInfoOnMount": true }, `spec.podInfoOnMount: Invalid value: true: ${notSame}`],
      [{ "spec.fsGroupPolicy": "None" }, `spec.fsGroupPolicy: Invalid value: "None": ${notSame}`],
      [
        { "spec.volumeLifecycleModes": ["Ephemeral"] },
        `spec.volumeLifecycleModes: Invalid value: []storage.VolumeLifecycleMode{"Ephemeral"}: ${notSame}`,
      ],
    ],
  },
]);
