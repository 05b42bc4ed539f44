import { testKindRules } from "../../testing/kind-rules.ts";

testKindRules("clusterroles.rbac.authorization.k8s.io", { rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get"] }] }, [
  { name: "a role", change: {}, want: [] },
  {
    name: "paths together with resources",
    change: { rules: [{ verbs: ["get"], nonResourceURLs: ["/x"], resources: ["a"], apiGroups: [""] }] },
    want: [
      'rules[0].nonResourceURLs: Invalid value: []string{"/x"}: rules cannot apply to both regular resources and non-resource URLs',
    ],
  },
  {
    name: "a selector of nothing",
    change: { aggregationRule: { clusterRoleSelectors: [] } },
    want: [
      "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil",
    ],
  },
  {
    name: "a selector",
    change: { aggregationRule: { clusterRoleSelectors: [{ matchLabels: { "a b": "c" } }] } },
    want: [
      "aggregationRule.clusterRoleSelectors[0].matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'aggregationRule.clusterRoleSelectors[0]: Invalid value: "null": invalid label selector.',
    ],
  },
]);
