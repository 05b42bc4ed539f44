import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules(
  "rolebindings.rbac.authorization.k8s.io",
  { roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "r" }, subjects: [{ kind: "User", name: "u" }] },
  [
    { name: "a binding", change: {}, want: [] },
    {
      name: "a reference",
      change: { roleRef: { apiGroup: "a", kind: "Pod", name: "" } },
      want: [
        'roleRef.apiGroup: Unsupported value: "a": supported values: "rbac.authorization.k8s.io"',
        'roleRef.kind: Unsupported value: "Pod": supported values: "Role", "ClusterRole"',
        "roleRef.name: Required value",
      ],
    },
    {
      name: "a reference of a bad name",
      change: { "roleRef.name": "a/b" },
      want: ["roleRef.name: Invalid value: \"a/b\": may not contain '/'"],
    },
    {
      name: "subjects",
      change: {
        subjects: [
          { kind: "User", name: "" },
          { kind: "ServiceAccount", name: "_" },
          { kind: "ServiceAccount", name: "a", apiGroup: "x" },
          { kind: "Group", name: "g", apiGroup: "x" },
          { kind: "Robot", name: "r" },
        ],
      },
      want: [
        "subjects[0].name: Required value",
        "subjects[1].name: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        'subjects[2].apiGroup: Unsupported value: "x": supported values: ""',
        'subjects[3].apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io"',
        'subjects[4].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
      ],
    },
    {
      name: "another reference",
      change: { "roleRef.name": "s" },
      before: {},
      want: [
        'roleRef: Invalid value: rbac.RoleRef{APIGroup:"rbac.authorization.k8s.io", Kind:"Role", Name:"s"}: cannot change roleRef',
      ],
    },
    {
      name: "a subject of no kind",
      before: {},
      change: { subjects: [{ kind: "", name: "" }] },
      want: [
        "subjects[0].name: Required value",
        'subjects[0].kind: Unsupported value: "": supported values: "ServiceAccount", "User", "Group"',
      ],
    },
  ],
);
