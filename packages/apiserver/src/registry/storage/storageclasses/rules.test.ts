import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("storageclasses.storage.k8s.io", { provisioner: "p" }, [
  { name: "a class", change: {}, want: [] },
  { name: "a provisioner", change: { provisioner: "" }, want: ["provisioner: Required value"] },
  {
    name: "a provisioner as it was written",
    change: { provisioner: "A!" },
    want: [
      "provisioner: Invalid value: \"A!\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "parameters",
    change: { parameters: { "": "x" }, reclaimPolicy: "Forget", volumeBindingMode: "Never" },
    want: [
      'parameters: Invalid value: "": field can not be empty.',
      'reclaimPolicy: Unsupported value: "Forget": supported values: "Delete", "Retain"',
      'volumeBindingMode: Unsupported value: "Never": supported values: "Immediate", "WaitForFirstConsumer"',
    ],
  },
  {
    name: "places",
    change: {
      allowedTopologies: [
        {
          matchLabelExpressions: [
            { key: "a b", values: [] },
            { key: "a", values: ["x", "x"] },
            { key: "a", values: ["y"] },
          ],
        },
      ],
    },
    want: [
      "allowedTopologies[0].matchLabelExpressions[0].values: Required value",
      "allowedTopologies[0].matchLabelExpressions[0].key: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'allowedTopologies[0].matchLabelExpressions[1].values[1]: Duplicate value: "x"',
      'allowedTopologies[0].matchLabelExpressions[2].key: Duplicate value: "a"',
    ],
  },
  {
    name: "a label without values, which is not the same as no label",
    change: { allowedTopologies: [{ matchLabelExpressions: [{ key: "a", values: [] }] }] },
    want: ["allowedTopologies[0].matchLabelExpressions[0].values: Required value"],
  },
  {
    name: "anything else",
    change: { parameters: { a: "b" }, provisioner: "q", reclaimPolicy: "Retain", volumeBindingMode: "WaitForFirstConsumer" },
    before: {},
    want: [
      "parameters: Forbidden: updates to parameters are forbidden.",
      "provisioner: Forbidden: updates to provisioner are forbidden.",
      "reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden.",
      'volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable',
    ],
  },

  {
    name: "too many parameters",
    change: {
      parameters: Object.fromEntries(Array.from({ length: 513 }, (_, i) => [`p${i}`, ""])),
      reclaimPolicy: "Forget",
    },
    want: [
      "parameters: Too long: must have at most 512 bytes",
      'reclaimPolicy: Unsupported value: "Forget": supported values: "Delete", "Retain"',
    ],
  },
  {
    name: "parameters that are too long",
    change: { parameters: { a: "x".repeat(256 * 1024) } },
    want: ["parameters: Too long: must have at most 262144 bytes"],
  },
  {
    name: "the same place twice",
    change: {
      allowedTopologies: [
        { matchLabelExpressions: [{ key: "a", values: ["x", "y"] }] },
        { matchLabelExpressions: [{ key: "a", values: ["y", "x"] }] },
      ],
    },
    want: ['allowedTopologies[1].matchLabelExpressions: Duplicate value: ""'],
  },
  {
    name: "a provisioner that is none, later",
    change: { provisioner: "a b" },
    before: { provisioner: "a b" },
    want: [
      "provisioner: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "metadata",
    change: { "metadata.annotations": { "a b": "c" } },
    before: {},
    want: [
      "metadata.annotations: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      "metadata.annotations: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  { name: "nothing said of when to bind", undefaulted: true, change: {}, want: ["volumeBindingMode: Required value"] },
]);
