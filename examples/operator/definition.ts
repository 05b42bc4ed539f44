const schemaOf = (spec: object) => ({
  openAPIV3Schema: {
    type: "object",
    properties: { spec, status: { type: "object", properties: { readyReplicas: { type: "integer" } } } },
  },
});

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
        schema: schemaOf({
          type: "object",
          required: ["image"],
          properties: { image: { type: "string" }, replicas: { type: "integer", default: 1 } },
          "x-kubernetes-validations": [{ rule: "self.replicas <= 5", message: "at most five replicas" }],
        }),
      },
    ],
  },
};

/** The definition with its earlier version, in which the number of replicas is called `count`; a webhook converts. */
export function withEarlierVersion(clientConfig: { url: string; caBundle: string }): typeof definition {
  const properties = { image: { type: "string" }, count: { type: "integer" } };
  const earlier = {
    name: "v1beta1",
    served: true,
    storage: false,
    subresources: { status: {} },
    schema: schemaOf({ type: "object", properties }),
  };
  const conversion = { strategy: "Webhook", webhook: { clientConfig, conversionReviewVersions: ["v1"] } };
  const { versions, ...spec } = definition.spec;
  return { ...definition, spec: { ...spec, versions: [...versions, earlier], conversion } as never };
}

/** What the webhook of the definition does with an object. */
export function convert(object: Record<string, unknown>, desired: string): Record<string, unknown> {
  const { replicas, count, ...spec } = object["spec"] as { image: string; replicas?: number; count?: number };
  const many = replicas ?? count;
  const name = desired.endsWith("/v1beta1") ? "count" : "replicas";
  return { ...object, apiVersion: desired, spec: { ...spec, ...(many !== undefined && { [name]: many }) } };
}

export interface Website {
  apiVersion?: string;
  kind?: string;
  metadata: { name: string; namespace: string; uid?: string; finalizers?: string[]; deletionTimestamp?: Date | string };
  spec: { image: string; replicas?: number };
  status?: { readyReplicas?: number };
}
