/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const bindings = "rolebindings.rbac.authorization.k8s.io";
const clusterBindings = "clusterrolebindings.rbac.authorization.k8s.io";
const group = "rbac.authorization.k8s.io";
const subjects = (...list: object[]) => ({ subjects: list });

testAccepted([
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
