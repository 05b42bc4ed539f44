import { testKindRules } from "../../testing/kind-rules.ts";

testKindRules(
  "clusterrolebindings.rbac.authorization.k8s.io",
  { roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "r" }, subjects: [{ kind: "User", name: "u" }] },
  [
    { name: "a binding", change: {}, want: [] },
    {
      name: "a role of a namespace",
      change: { "roleRef.kind": "Role" },
      want: ['roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'],
    },
    {
      name: "an account without namespace",
      change: { subjects: [{ kind: "ServiceAccount", name: "a" }] },
      want: ["subjects[0].namespace: Required value"],
    },
    {
      name: "another reference",
      change: { "roleRef.name": "s" },
      before: {},
      want: [
        'roleRef: Invalid value: rbac.RoleRef{APIGroup:"rbac.authorization.k8s.io", Kind:"ClusterRole", Name:"s"}: cannot change roleRef',
      ],
    },
  ],
);
