import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("roles.rbac.authorization.k8s.io", { rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }] }, [
  { name: "a role", change: {}, want: [] },
  ...["/", "%"].map((part) => ({
    name: `a name with ${part}`,
    change: { "metadata.name": `a${part}b` },
    want: [`metadata.name: Invalid value: "a${part}b": may not contain '${part}'`],
  })),
  ...[".", ".."].map((name) => ({
    name: `the name ${name}`,
    change: { "metadata.name": name },
    want: [`metadata.name: Invalid value: "${name}": may not be '${name}'`],
  })),
  ...["a.b", "...", "A:b_c d"].map((name) => ({ name: `the name ${name}`, change: { "metadata.name": name }, want: [] })),
  {
    name: "rules of nothing",
    change: { rules: [{}, { verbs: ["get"] }, { verbs: ["get"], apiGroups: [""] }] },
    want: [
      "rules[0].verbs: Required value: verbs must contain at least one value",
      "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
      "rules[0].resources: Required value: resource rules must supply at least one resource",
      "rules[1].apiGroups: Required value: resource rules must supply at least one api group",
      "rules[1].resources: Required value: resource rules must supply at least one resource",
      "rules[2].resources: Required value: resource rules must supply at least one resource",
    ],
  },
  {
    name: "paths in a namespace",
    change: { rules: [{ verbs: ["get"], nonResourceURLs: ["/x"] }] },
    want: ['rules[0].nonResourceURLs: Invalid value: []string{"/x"}: namespaced rules cannot apply to non-resource URLs'],
  },
  {
    name: "no verbs, later",
    before: {},
    change: { rules: [{ apiGroups: [""], resources: ["pods"], verbs: [] }] },
    want: ["rules[0].verbs: Required value: verbs must contain at least one value"],
  },
]);
