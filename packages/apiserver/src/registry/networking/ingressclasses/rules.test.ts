import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("ingressclasses.networking.k8s.io", { spec: { controller: "a.com/b" } }, [
  { name: "a class", change: {}, want: [] },
  { name: "no controller", change: { "spec.controller": "" }, want: ["spec.controller: Required value"] },
  {
    name: "a controller without domain, and too long",
    change: {
      "spec.controller":
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    },
    want: [
      "spec.controller: Too long: must have at most 250 bytes",
      'spec.controller: Invalid value: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": must be a domain-prefixed path (such as "acme.io/foo")',
    ],
  },
  {
    name: "a controller whose bytes, not characters, are too many",
    change: { "spec.controller": `a.com/${"é".repeat(123)}` },
    want: [
      "spec.controller: Too long: must have at most 250 bytes",
      `spec.controller: Invalid value: "${"é".repeat(123)}": Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')`,
    ],
  },
  { name: "a controller of 250 bytes", change: { "spec.controller": `a.com/${"b".repeat(244)}` }, want: [] },
  {
    name: "a controller whose path has a slash",
    change: { "spec.controller": "a.com/b/c" },
    want: [],
  },
  {
    name: "an empty namespace of the cluster's parameters",
    change: { "spec.parameters": { kind: "A", name: "b", scope: "Cluster", namespace: "" } },
    want: ["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
  },
  {
    name: "parameters",
    change: { "spec.parameters": { kind: "", name: "a/b", apiGroup: "_" } },
    want: [
      "spec.parameters.apiGroup: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      "spec.parameters.kind: Required value: kind is required",
      "spec.parameters.name: Invalid value: \"a/b\": may not contain '/'",
    ],
  },
  {
    name: "parameters of a namespace that is missing, and one that is not wanted",
    change: { "spec.parameters": { kind: "A", name: "b", scope: "Namespace" } },
    want: ["spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"],
  },
  {
    name: "a namespace of the cluster's",
    change: { "spec.parameters": { kind: "A", name: "b", scope: "Cluster", namespace: "x" } },
    want: ["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
  },
  {
    name: "another controller",
    change: { "spec.controller": "a.com/c" },
    before: {},
    want: ['spec.controller: Invalid value: "a.com/c": field is immutable'],
  },
  {
    name: "a scope",
    change: { "spec.parameters": { kind: "A", name: "b", scope: "World" } },
    want: ['spec.parameters.scope: Unsupported value: "World": supported values: "Cluster", "Namespace"'],
  },
  {
    name: "a controller of a strange domain",
    change: { "spec.controller": "_/b" },
    want: [
      "spec.controller: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  },
  {
    name: "a controller of a strange path",
    change: { "spec.controller": "a.com/b c" },
    want: [
      "spec.controller: Invalid value: \"b c\": Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')",
    ],
  },
  {
    name: "parameters of no scope",
    undefaulted: true,
    change: { "spec.parameters": { kind: "A", name: "a" } },
    want: ["spec.parameters.scope: Required value"],
  },
  {
    name: "parameters in a namespace that is none",
    change: { "spec.parameters": { kind: "A", name: "a", scope: "Namespace", namespace: "a.b" } },
    want: [
      "spec.parameters.namespace: Invalid value: \"a.b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  },
]);
