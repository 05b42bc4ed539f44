/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "ingressclasses.networking.k8s.io";

testAccepted([
  {
    resource,
    name: "controllers that are a domain and a path",
    taken: ["a/b", "a.b/c/d", "a.b//c", "a.b/c/", "a.b/C-._~!$&'()*+,;=:%zz", `a/${"b".repeat(248)}`].map((controller) => ({
      "spec.controller": controller,
    })),
    refused: [
      ...["a.b", "a.b/", "/b", "/"].map(
        (controller) =>
          [
            { "spec.controller": controller },
            `spec.controller: Invalid value: "${controller}": must be a domain-prefixed path`,
          ] as const,
      ),
      [{ "spec.controller": "a/b@c" }, 'spec.controller: Invalid value: "b@c": Invalid path'],
      [{ "spec.controller": `a/${"b".repeat(249)}` }, "spec.controller: Too long: must have at most 250 bytes"],
    ],
  },
  {
    resource,
    name: "parameters of either scope",
    taken: [
      { "spec.parameters": { kind: "K", name: "n" } },
      { "spec.parameters": { apiGroup: "a.b", kind: "K", name: "n", scope: "Cluster" } },
      { "spec.parameters": { kind: "K", name: "n", scope: "Namespace", namespace: "a".repeat(63) } },
    ],
    refused: [
      [
        { "spec.parameters": { kind: "K", name: "n", scope: "Namespace", namespace: "" } },
        "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
      ],
      [
        { "spec.parameters": { kind: "K", name: "n", scope: "Cluster", namespace: "" } },
        "spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'",
      ],
    ],
  },
  {
    resource,
    name: "other parameters of the same controller",
    before: {},
    taken: [{ "spec.parameters": { kind: "K", name: "n" } }],
  },
]);
