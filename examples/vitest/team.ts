import type { KubernetesObject } from "@kubernetes/client-node";

/** A team gets a namespace and may run so many pods in it. */
export interface Team extends KubernetesObject {
  spec: { owner: string; members: string[]; pods?: number };
  status?: { namespace?: string };
}

export const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "teams.example.com" },
  spec: {
    group: "example.com",
    scope: "Cluster",
    names: { plural: "teams", singular: "team", kind: "Team" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: {
                type: "object",
                required: ["owner", "members"],
                properties: {
                  owner: { type: "string", maxLength: 63 },
                  members: { type: "array", maxItems: 100, items: { type: "string", maxLength: 63 } },
                  pods: { type: "integer", minimum: 0, default: 10 },
                },
                "x-kubernetes-validations": [{ rule: "self.owner in self.members", message: "the owner must be a member" }],
              },
              status: { type: "object", properties: { namespace: { type: "string" } } },
            },
          },
        },
      },
    ],
  },
};
