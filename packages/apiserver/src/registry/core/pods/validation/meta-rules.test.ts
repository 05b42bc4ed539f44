import { testKindRules } from "../../../../testing/kind-rules.ts";

testKindRules("pods", { spec: { containers: [{ name: "c", image: "i" }] } }, [
  {
    name: "a finalizer without domain",
    change: { "metadata.finalizers": ["mine"] },
    want: ['metadata.finalizers[0]: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified'],
  },
  {
    name: "labels and annotations",
    change: { "metadata.labels": { "a b": "c", d: "e f" }, "metadata.annotations": { "-": "x" } },
    want: [
      "metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "metadata.labels: Invalid value: \"e f\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
      "metadata.annotations: Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "an owner of nothing",
    change: { "metadata.ownerReferences": [{}] },
    want: [
      'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty',
      'metadata.ownerReferences.kind: Invalid value: "": kind must not be empty',
      'metadata.ownerReferences.name: Invalid value: "": name must not be empty',
      'metadata.ownerReferences.uid: Invalid value: "": uid must not be empty',
    ],
  },
  {
    name: "two controllers",
    change: {
      "metadata.ownerReferences": [
        { apiVersion: "v1", kind: "A", name: "a", uid: "1", controller: true },
        { apiVersion: "v1", kind: "B", name: "b", uid: "2", controller: true },
      ],
    },
    want: [
      'metadata.ownerReferences: Invalid value: []v1.OwnerReference{v1.OwnerReference{APIVersion:"v1", Kind:"A", Name:"a", UID:"1", Controller:(*bool)(0xc000000000), BlockOwnerDeletion:(*bool)(nil)}, v1.OwnerReference{APIVersion:"v1", Kind:"B", Name:"b", UID:"2", Controller:(*bool)(0xc000000000), BlockOwnerDeletion:(*bool)(nil)}}: Only one reference can have Controller set to true. Found "true" in references for a and b',
    ],
  },
  {
    name: "an event as owner",
    change: { "metadata.ownerReferences": [{ apiVersion: "v1", kind: "Event", name: "a", uid: "1" }] },
    want: [
      'metadata.ownerReferences: Invalid value: v1.OwnerReference{APIVersion:"v1", Kind:"Event", Name:"a", UID:"1", Controller:(*bool)(nil), BlockOwnerDeletion:(*bool)(nil)}: /v1, Kind=Event is disallowed from being an owner',
    ],
  },
  {
    name: "a name",
    change: { "metadata.name": "A_" },
    want: [
      "metadata.name: Invalid value: \"A_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  },
  {
    name: "a negative generation",
    change: { "metadata.generation": -1 },
    want: ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"],
  },
]);
