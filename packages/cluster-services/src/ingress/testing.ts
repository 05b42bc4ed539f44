import type { Ingress, IngressBackend } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";

/** Type, path and name of a Service with port 80. */
export type Path = readonly [type: "Exact" | "Prefix" | "ImplementationSpecific", path: string, service: string];

interface Extra {
  readonly created?: string;
  /** Name of a Service. */
  readonly defaultBackend?: string;
  readonly spec?: Partial<Ingress["spec"]>;
}

const backend = (name: string): IngressBackend => ({ service: { name, port: { number: 80 } } });

/** An Ingress in the namespace `default`. */
export const anIngress = (
  name: string,
  rules: readonly { readonly host?: string; readonly paths: readonly Path[] }[],
  { created = "2026-01-01T00:00:00Z", defaultBackend, spec }: Extra = {},
): Ingress => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "Ingress",
  metadata: { namespace: "default", name, creationTimestamp: created },
  spec: {
    ...(defaultBackend !== undefined && { defaultBackend: backend(defaultBackend) }),
    rules: rules.map(({ host, paths }) => ({
      ...(host !== undefined && { host }),
      http: { paths: paths.map(([pathType, path, service]) => ({ pathType, path, backend: backend(service) })) },
    })),
    ...spec,
  },
});
