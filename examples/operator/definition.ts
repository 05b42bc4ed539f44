/** A website is a Deployment; more than five replicas are refused. */
export const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "websites.example.com" },
  spec: {
    group: "example.com",
    scope: "Namespaced",
    names: { plural: "websites", singular: "website", kind: "Website" },
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
                required: ["image"],
                properties: { image: { type: "string" }, replicas: { type: "integer", default: 1 } },
                "x-kubernetes-validations": [{ rule: "self.replicas <= 5", message: "at most five replicas" }],
              },
              status: { type: "object", properties: { readyReplicas: { type: "integer" } } },
            },
          },
        },
      },
    ],
  },
};

export interface Website {
  apiVersion?: string;
  kind?: string;
  metadata: { name: string; namespace: string; uid?: string; finalizers?: string[]; deletionTimestamp?: Date | string };
  spec: { image: string; replicas?: number };
  status?: { readyReplicas?: number };
}
