import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("csistoragecapacities.storage.k8s.io", { storageClassName: "s" }, [
  { name: "a capacity", change: {}, want: [] },
  {
    name: "a class and amounts",
    change: { storageClassName: "_", capacity: "-1", maximumVolumeSize: "-1", nodeTopology: { matchLabels: { "a b": "c" } } },
    want: [
      "nodeTopology.matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "storageClassName: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      'capacity: Invalid value: "-1": must be greater than or equal to 0',
      'maximumVolumeSize: Invalid value: "-1": must be greater than or equal to 0',
    ],
  },
  {
    name: "another class",
    change: { storageClassName: "t" },
    before: {},
    want: ['storageClassName: Invalid value: "t": field is immutable'],
  },

  {
    name: "another place, but another amount",
    change: { nodeTopology: { matchLabels: { zone: "b" } }, capacity: "2Gi" },
    before: { nodeTopology: { matchLabels: { zone: "a" } }, capacity: "1Gi" },
    want: [
      'nodeTopology: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"zone":"b"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable',
    ],
  },
  {
    name: "an update to less than nothing",
    change: { capacity: "-1" },
    before: {},
    want: ['capacity: Invalid value: "-1": must be greater than or equal to 0'],
  },
  {
    name: "metadata",
    change: { "metadata.labels": { a: "b c" } },
    before: {},
    want: [
      "metadata.labels: Invalid value: \"b c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
      "metadata.labels: Invalid value: \"b c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ],
  },
]);
