/** What roles and bindings may say: values next to those that the rules of each kind see refused. */
import { testAccepted } from "../../testing/accepted.ts";

const group = "rbac.authorization.k8s.io";
const [roles, clusterRoles, bindings, clusterBindings] = ["roles", "clusterroles", "rolebindings", "clusterrolebindings"].map(
  (resource) => `${resource}.${group}`,
) as [string, string, string, string];
const both = "rules cannot apply to both regular resources and non-resource URLs";
const rule = (more: object) => ({ rules: [{ verbs: ["get"], ...more }] });
const urls = { nonResourceURLs: ["/x"] };
const subjects = (...list: object[]) => ({ subjects: list });

testAccepted([
  {
    resource: clusterRoles,
    name: "rules of resources and of URLs, and what gathers others",
    taken: [
      rule(urls),
      rule({ apiGroups: ["*"], resources: ["*"], resourceNames: ["a"] }),
      { rules: [] },
      { rules: undefined, aggregationRule: { clusterRoleSelectors: [{}, { matchLabels: { a: "b" } }] } },
    ],
    refused: [
      ...["apiGroups", "resources", "resourceNames"].map(
        (field) =>
          [rule({ ...urls, [field]: ["a"] }), `rules[0].nonResourceURLs: Invalid value: []string{"/x"}: ${both}`] as const,
      ),
      [rule({ apiGroups: [""] }), "rules[0].resources: Required value: resource rules must supply at least one resource"],
      [rule({ resources: ["a"] }), "rules[0].apiGroups: Required value: resource rules must supply at least one api group"],
      [{ rules: [{ verbs: [], ...urls }] }, "rules[0].verbs: Required value: verbs must contain at least one value"],
    ],
  },
  {
    resource: clusterRoles,
    name: "other rules, which are validated too",
    before: {},
    taken: [rule(urls)],
    refused: [[{ aggregationRule: {} }, "aggregationRule.clusterRoleSelectors: Required value: at least one"]],
  },
  {
    resource: roles,
    name: "names that are path segments, and nothing of what only cluster roles have",
    taken: [{ "metadata.name": "system:A b*" }, { aggregationRule: { clusterRoleSelectors: [] } }],
    refused: [
      [{ "metadata.name": "a%b" }, `metadata.name: Invalid value: "a%b": may not contain '%'`],
      [{ "metadata.name": ".." }, `metadata.name: Invalid value: "..": may not be '..'`],
    ],
  },
  {
    resource: bindings,
    name: "roles of both scopes, and each subject",
    taken: [
      ...["Role", "ClusterRole"].map((kind) => ({ "roleRef.kind": kind, "roleRef.name": "system:a" })),
      subjects(),
      subjects({ kind: "ServiceAccount", name: "a.b" }, { kind: "ServiceAccount", name: "a", namespace: "b" }),
      subjects({ kind: "User", name: "any one" }, { kind: "Group", name: "system:all" }),
    ],
    refused: [
      [
        subjects({ kind: "ServiceAccount", name: "a", apiGroup: group }),
        `subjects[0].apiGroup: Unsupported value: "${group}": supported values: ""`,
      ],
      [
        subjects({ kind: "Group", name: "a", apiGroup: "b" }),
        `subjects[0].apiGroup: Unsupported value: "b": supported values: "${group}"`,
      ],
      [subjects({ kind: "User", name: "a" }, { kind: "Group", name: "" }), "subjects[1].name: Required value"],
      [{ "roleRef.apiGroup": "b" }, `roleRef.apiGroup: Unsupported value: "b": supported values: "${group}"`],
      [{ "roleRef.name": "." }, `roleRef.name: Invalid value: ".": may not be '.'`],
    ],
  },
  {
    resource: bindings,
    name: "other subjects of the same role",
    before: {},
    taken: [subjects({ kind: "Group", name: "g" }), { subjects: undefined }],
    refused: [
      [
        { "roleRef.kind": "ClusterRole" },
        'roleRef: Invalid value: rbac.RoleRef{APIGroup:"rbac.authorization.k8s.io", Kind:"ClusterRole"',
      ],
      [subjects({ kind: "User", name: "" }), "subjects[0].name: Required value"],
    ],
  },
  {
    resource: clusterBindings,
    name: "accounts with their namespace",
    taken: [
      subjects({ kind: "ServiceAccount", name: "a", namespace: "b" }, { kind: "User", name: "a" }, { kind: "Group", name: "a" }),
    ],
    refused: [
      [
        subjects({ kind: "Other", name: "a" }),
        'subjects[0].kind: Unsupported value: "Other": supported values: "ServiceAccount", "User", "Group"',
      ],
    ],
  },
]);
