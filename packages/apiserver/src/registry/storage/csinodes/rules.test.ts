import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("csinodes.storage.k8s.io", { spec: { drivers: [] } }, [
  { name: "a node", change: {}, want: [] },
  {
    name: "drivers",
    change: {
      spec: {
        drivers: [
          { name: "", nodeID: "" },
          { name: "a", nodeID: "x", allocatable: { count: -1 }, topologyKeys: ["a b", "c", "c", "Example.com/zone"] },
          { name: "a", nodeID: "y" },
        ],
      },
    },
    want: [
      "spec.drivers[0].name: Required value",
      "spec.drivers[0].name: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "spec.drivers[0].nodeID: Required value",
      "spec.drivers[1].allocatable.count: Invalid value: -1: must be greater than or equal to 0",
      "spec.drivers[1]: Invalid value: []string{\"a b\", \"c\", \"c\", \"Example.com/zone\"}: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'spec.drivers[1]: Duplicate value: "c"',
      "spec.drivers[1]: Invalid value: []string{\"a b\", \"c\", \"c\", \"Example.com/zone\"}: prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      'spec.drivers[2].name: Duplicate value: "a"',
    ],
  },
  {
    name: "another driver of the name",
    change: { "spec.drivers[0].nodeID": "y" },
    before: { "spec.drivers": [{ name: "a", nodeID: "x" }] },
    want: [
      'CSINodeDriver: Invalid value: storage.CSINodeDriver{Name:"a", NodeID:"y", TopologyKeys:[]string(nil), Allocatable:(*storage.VolumeNodeResources)(nil)}: field is immutable',
    ],
  },

  {
    name: "a long id and an empty key",
    change: { "spec.drivers": [{ name: "a", nodeID: "x".repeat(193), topologyKeys: [""] }] },
    want: [
      'spec.drivers[0].nodeID: Invalid value: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": must be 192 characters or less',
      "spec.drivers[0]: Required value",
      'spec.drivers[0]: Invalid value: []string{""}: name part must be non-empty',
      "spec.drivers[0]: Invalid value: []string{\"\"}: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "ids of 192 bytes, of more bytes than characters, and nothing allocatable",
    change: {
      "spec.drivers": [
        { name: "a", nodeID: "x".repeat(192), allocatable: { count: 0 } },
        { name: "b", nodeID: "é".repeat(97) },
      ],
    },
    want: [`spec.drivers[1].nodeID: Invalid value: "${"é".repeat(97)}": must be 192 characters or less`],
  },
  {
    name: "another driver besides",
    change: { "spec.drivers[1]": { name: "b", nodeID: "y" } },
    before: { "spec.drivers": [{ name: "a", nodeID: "x" }] },
    want: [],
  },
  {
    name: "no driver any more",
    change: { "spec.drivers": [] },
    before: { "spec.drivers": [{ name: "a", nodeID: "x" }] },
    want: [],
  },
  {
    name: "metadata",
    change: { "metadata.labels": { "a b": "c" }, "metadata.finalizers": ["mine"] },
    before: {},
    want: [
      "metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'metadata.finalizers[0]: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified',
    ],
  },
  {
    name: "a driver of no name",
    before: { "spec.drivers": [] },
    change: { "spec.drivers": [{ name: "", nodeID: "" }] },
    want: [
      "spec.drivers[0].name: Required value",
      "spec.drivers[0].name: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "spec.drivers[0].nodeID: Required value",
    ],
  },
]);
