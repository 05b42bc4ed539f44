/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "flowschemas.flowcontrol.apiserver.k8s.io";
const user = { kind: "User", user: { name: "u" } };
const groups = (...names: string[]) => names.map((name) => ({ kind: "Group", group: { name } }));
const ofResources = { verbs: ["get"], apiGroups: [""], resources: ["pods"], namespaces: ["n"] };
const resources = (more: object) => ({ "spec.rules": [{ subjects: [user], resourceRules: [{ ...ofResources, ...more }] }] });
const urls = (...nonResourceURLs: string[]) => ({
  "spec.rules": [{ subjects: [user], nonResourceRules: [{ verbs: ["get"], nonResourceURLs }] }],
});
const account = (serviceAccount: object) => ({ kind: "ServiceAccount", serviceAccount: { namespace: "n", ...serviceAccount } });
const subjects = (...list: object[]) => ({ "spec.rules": [{ subjects: list, resourceRules: [ofResources] }] });
const anything = {
  resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"] }],
  nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
};
const verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
const url = "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value:";

testAccepted([
  {
    resource,
    name: "rules of everything there is",
    taken: [
      ...["ByUser", "ByNamespace"].map((type) => ({ "spec.distinguisherMethod": { type } })),
      { "spec.rules": [] },
      { "spec.rules": [{ subjects: [user], ...anything }] },
      ...[verbs, ["*"]].map((list) => resources({ verbs: list })),
      resources({ namespaces: undefined, clusterScope: true }),
      resources({ namespaces: ["*"] }),
      resources({ namespaces: ["a", "b"], apiGroups: ["", "apps"], resources: ["pods", "pods/log"] }),
      urls("*"),
      urls("/", "/a", "/a/b/", "/a/*", "/*"),
    ],
    refused: [
      [urls("/a b"), `${url} "/a b": must not contain white-space`],
      [urls("/a//b"), `${url} "/a//b": must not contain double slash`],
      [urls("/a*/b"), `${url} "/a*/b": wildcard can only do suffix matching`],
      [urls("/a*/*"), `${url} "/a*/*": wildcard can only do suffix matching`],
      [urls("/a*"), `${url} "/a*": wildcard can only do suffix matching`],
      [urls("a //*b"), `${url} "a //*b": must start with slash`],
      [
        resources({ namespaces: [] }),
        "spec.rules[0].resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped",
      ],
      [resources({ verbs: ["get", "head"] }), 'spec.rules[0].resourceRules[0].verbs: Unsupported value: []string{"get", "head"}'],
    ],
  },
  {
    resource,
    name: "subjects of each kind",
    taken: [subjects(user, ...groups("g", "*"), account({ name: "*" }), account({ name: "a.b" }))],
    refused: [
      [
        subjects(user, { ...user, serviceAccount: { name: "a" } }),
        "spec.rules[0].subjects[1].serviceAccount: Forbidden: serviceAccount is forbidden when",
      ],
      [
        subjects({ ...account({ name: "a" }), user: { name: "u" } }),
        "spec.rules[0].subjects[0].user: Forbidden: user is forbidden when subject kind is not 'User'",
      ],
      [subjects({ kind: "User", user: { name: "" } }), "spec.rules[0].subjects[0].user.name: Required value"],
      [
        subjects({ kind: "Group" }),
        "spec.rules[0].subjects[0].group: Required value: group is required when subject kind is 'Group'",
      ],
      [
        subjects({ kind: "ServiceAccount" }),
        "spec.rules[0].subjects[0].serviceAccount: Required value: serviceAccount is required",
      ],
    ],
  },
  {
    resource,
    valid: {
      metadata: { name: "catch-all" },
      spec: {
        priorityLevelConfiguration: { name: "catch-all" },
        matchingPrecedence: 10_000,
        distinguisherMethod: { type: "ByUser" },
        rules: [{ subjects: groups("system:unauthenticated", "system:authenticated"), ...anything }],
      },
    },
    name: "the last schema as it has to be",
    before: {},
    taken: [{}, { "metadata.labels": { a: "b" } }],
    refused: [
      [{ "spec.matchingPrecedence": 9999 }, "spec: Invalid value: flowcontrol.FlowSchemaSpec{"],
      [{ "spec.distinguisherMethod": undefined }, "spec: Invalid value: flowcontrol.FlowSchemaSpec{"],
      [{ "spec.priorityLevelConfiguration.name": "other" }, "spec: Invalid value: flowcontrol.FlowSchemaSpec{"],
    ],
  },
  {
    resource,
    name: "conditions of different types",
    status: true,
    before: {},
    taken: [{ "status.conditions": [{ type: "A" }, { type: "B" }] }, { status: {} }],
  },
]);
