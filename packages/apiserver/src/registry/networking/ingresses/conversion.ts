import type { Ingress, IngressBackend } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import type {
  IngressBackend as OldBackend,
  Ingress as OldIngress,
} from "@coxswain/apimachinery/objects/schema/kinds/networking/v1beta1";

export function ingressFromV1beta1({ spec, ...rest }: OldIngress): Ingress {
  const { backend, rules, ...others } = spec ?? {};
  return {
    ...rest,
    spec: {
      ...others,
      ...(backend && { defaultBackend: backendFromV1beta1(backend) }),
      ...(rules && { rules: eachBackend(rules, backendFromV1beta1) }),
    },
  };
}

export function ingressToV1beta1({ spec, ...rest }: Ingress): OldIngress {
  const { defaultBackend, rules, ...others } = spec ?? {};
  return {
    ...rest,
    spec: {
      ...others,
      ...(defaultBackend && { backend: backendToV1beta1(defaultBackend) }),
      ...(rules && { rules: eachBackend(rules, backendToV1beta1) }),
    },
  };
}

/** v1beta1 has a default pathType, v1 requires one. */
export function defaultIngressV1beta1(object: OldIngress): void {
  for (const { http } of object.spec?.rules ?? []) {
    for (const path of http?.paths ?? []) path.pathType ??= "ImplementationSpecific";
  }
}

interface Rule<Backend> {
  readonly http?: { readonly paths: { backend: Backend }[] };
}

function eachBackend<From, To>(rules: readonly Rule<From>[], change: (backend: From) => To): Rule<To>[] {
  return rules.map(({ http, ...rule }) => {
    if (http === undefined) return rule;
    return { ...rule, http: { ...http, paths: http.paths.map((path) => ({ ...path, backend: change(path.backend) })) } };
  });
}

function backendFromV1beta1({ serviceName = "", servicePort = 0, ...rest }: OldBackend): IngressBackend {
  if (serviceName === "" && servicePort === 0) return rest;
  const port = typeof servicePort === "string" ? { name: servicePort } : { number: servicePort };
  return { ...rest, service: { name: serviceName, port } };
}

function backendToV1beta1({ service, ...rest }: IngressBackend): OldBackend {
  if (service === undefined) return rest;
  return { ...rest, serviceName: service.name, servicePort: service.port?.name || (service.port?.number ?? 0) };
}
