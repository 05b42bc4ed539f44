/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const clusterRoles = "clusterroles.rbac.authorization.k8s.io";
const roles = "roles.rbac.authorization.k8s.io";
const both = "rules cannot apply to both regular resources and non-resource URLs";
const rule = (more: object) => ({ rules: [{ verbs: ["get"], ...more }] });
const urls = { nonResourceURLs: ["/x"] };

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
]);
