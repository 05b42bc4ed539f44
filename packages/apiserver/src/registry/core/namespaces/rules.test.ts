import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("namespaces", {}, [
  { name: "a namespace", change: {}, want: [] },
  {
    name: "a name",
    change: { "metadata.name": "a.b" },
    want: [
      "metadata.name: Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  },
  {
    name: "finalizers",
    change: { "spec.finalizers": ["mine"] },
    want: ['spec.finalizers: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified'],
  },
  {
    name: "a phase of what is not being deleted",
    change: { "status.phase": "Terminating" },
    before: {},
    status: true,
    want: ["status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"],
  },
  ...["", "Odd"].map((phase) => ({
    name: `the phase ${JSON.stringify(phase)} of what is not being deleted`,
    status: true as const,
    undefaulted: true as const,
    before: {},
    change: { "status.phase": phase },
    want: [`status.Phase: Invalid value: "${phase}": may only be 'Active' if \`deletionTimestamp\` is empty`],
  })),
  { name: "the phase Active", status: true, before: {}, change: { "status.phase": "Active" }, want: [] },
  {
    name: "the phase Terminating of what is being deleted",
    status: true,
    before: { "metadata.deletionTimestamp": "2022-01-01T00:00:00Z" },
    change: { "status.phase": "Terminating" },
    want: [],
  },
  {
    name: "a phase of what is being deleted",
    status: true,
    before: { "metadata.deletionTimestamp": "2022-01-01T00:00:00Z" },
    change: { "status.phase": "Active" },
    want: ["status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"],
  },
  {
    name: "a finalizer that is no name",
    change: { "spec.finalizers": ["a b"] },
    want: [
      "spec.finalizers: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'spec.finalizers: Invalid value: "a b": name is neither a standard finalizer name nor is it fully qualified',
    ],
  },
]);
