import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("csidrivers.storage.k8s.io", {}, [
  { name: "a driver", change: {}, want: [] },
  {
    name: "a name",
    change: { "metadata.name": "_" },
    want: [
      "metadata.name: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "name: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  },
  {
    name: "life cycles and tokens",
    change: {
      spec: {
        volumeLifecycleModes: ["Persistent", "Mine"],
        fsGroupPolicy: "Mine",
        tokenRequests: [{ audience: "a", expirationSeconds: 5 }, { audience: "a" }],
      },
    },
    want: [
      'spec.fsGroupPolicy: Unsupported value: "Mine": supported values: "File", "None", "ReadWriteOnceWithFSType"',
      "spec.tokenRequests[0].expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes",
      'spec.tokenRequests[1].audience: Duplicate value: "a"',
      'spec.volumeLifecycleModes: Unsupported value: "Mine": supported values: "Persistent", "Ephemeral"',
    ],
  },
  {
    name: "another way of attaching",
    change: { "spec.attachRequired": false },
    before: { "spec.attachRequired": true },
    want: ["spec.attachedRequired: Invalid value: false: field is immutable"],
  },
  {
    name: "storage capacity that is reported later",
    change: { "spec.storageCapacity": true },
    before: { "spec.storageCapacity": false },
    want: [],
  },

  {
    name: "a token for longer than there are seconds",
    change: { "spec.tokenRequests": [{ audience: "a", expirationSeconds: 2 ** 32 + 1 }] },
    want: [
      "spec.tokenRequests[0].expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
    ],
  },
  {
    name: "everything else that stays",
    before: { spec: { podInfoOnMount: false, fsGroupPolicy: "None", volumeLifecycleModes: ["Persistent"] } },
    change: { spec: { podInfoOnMount: true, fsGroupPolicy: "File", volumeLifecycleModes: ["Ephemeral"] } },
    want: [
      'spec.fsGroupPolicy: Invalid value: "File": field is immutable',
      "spec.podInfoOnMount: Invalid value: true: field is immutable",
      'spec.volumeLifecycleModes: Invalid value: []storage.VolumeLifecycleMode{"Ephemeral"}: field is immutable',
    ],
  },
  {
    name: "a token of a second, later",
    before: {},
    change: { "spec.tokenRequests": [{ audience: "a", expirationSeconds: 1 }] },
    want: ["spec.tokenRequests[0].expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes"],
  },
  {
    name: "a second token of an audience, of which only that is said",
    change: { "spec.tokenRequests": [{ audience: "a" }, { audience: "a", expirationSeconds: 1 }] },
    want: ['spec.tokenRequests[1].audience: Duplicate value: "a"'],
  },
  {
    name: "nothing said of attaching, pods and capacity",
    undefaulted: true,
    change: { spec: {} },
    want: [
      "spec.attachedRequired: Required value",
      "spec.podInfoOnMount: Required value",
      "spec.storageCapacity: Required value",
    ],
  },
  {
    name: "another mode that is none, and a token that is too short-lived",
    before: {},
    change: { "spec.volumeLifecycleModes": ["Never"], "spec.tokenRequests": [{ audience: "a", expirationSeconds: 1 }] },
    want: [
      'spec.volumeLifecycleModes: Invalid value: []storage.VolumeLifecycleMode{"Never"}: field is immutable',
      "spec.tokenRequests[0].expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes",
    ],
  },
]);
