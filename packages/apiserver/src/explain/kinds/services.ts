/** Services, their endpoints, and Ingresses. */

import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Endpoints, Pod, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Ingress, IngressClass } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { refToObject } from "../refusals.ts";
import { conditionOf, isSeen, type Look, labelsText, plural, type Reader, type Rule, rulesFor, sinceTime } from "../rule.ts";

interface ServiceFacts {
  /** Pods that the selector matches; undefined when the user may not list pods. */
  readonly pods: readonly { readonly pod: Pod; readonly ref: ObjectRef }[] | undefined;
  /** All pods of the namespace, when the selector matches none. */
  readonly others: readonly Pod[];
  readonly endpoints: Look<Endpoints>;
}

const endpointsController = "endpoint-controller";

const isReady = ({ status }: Pod): boolean => conditionOf(status?.conditions, "Ready")?.status === "True";
const created = ({ metadata }: KubeObject): { since?: string } => sinceTime(metadata.creationTimestamp);

const hasAddresses = (endpoints: Look<Endpoints>): boolean | undefined =>
  endpoints === "hidden"
    ? undefined
    : isSeen(endpoints) && (endpoints.subsets ?? []).some(({ addresses = [] }) => addresses.length > 0);

const hasSelector = ({ spec }: Service): boolean => Object.keys(spec.selector ?? {}).length > 0;

const serviceRules: Rule<Service, ServiceFacts>[] = [
  ({ object, related: { endpoints } }) => {
    if (object.spec.type === "ExternalName" || hasSelector(object) || hasAddresses(endpoints) !== false) return undefined;
    return {
      by: "explain",
      reason: "NoSelector",
      summary: "has no selector, and no endpoints have been created for it",
      remedy: "Give it the labels of its pods as selector, or create an Endpoints object of the same name.",
      ...created(object),
    };
  },
  ({ object, related: { pods, others } }) => {
    if (!hasSelector(object) || pods === undefined || pods.length > 0) return undefined;
    const selector = labelsText(object.spec.selector);
    const near = nearest(object.spec.selector ?? {}, others);
    return {
      by: endpointsController,
      reason: "SelectorMatchesNone",
      summary: `its selector ${selector} matches no pod of the namespace${near === undefined ? "" : `; ${near}`}`,
      remedy: "Correct the selector of the Service or the labels of the pods' template; or start the pods.",
      ...created(object),
    };
  },
  ({ object, related: { pods } }) => {
    if (!hasSelector(object) || !pods?.length) return undefined;
    for (const { targetPort, name, port } of object.spec.ports ?? []) {
      if (typeof targetPort !== "string" || targetPort === "") continue;
      const offered = pods.flatMap(({ pod }) =>
        (pod.spec.containers ?? []).flatMap(({ ports = [] }) => ports.map((one) => one.name)),
      );
      if (offered.includes(targetPort)) continue;
      const names = [...new Set(offered.filter(Boolean))];
      return {
        by: endpointsController,
        reason: "TargetPortMissing",
        summary: `target port ${targetPort} of port ${name || port} is a name that no container of its pods has${names.length > 0 ? ` (they have ${names.join(", ")})` : ""}`,
        remedy: "Give the container port that name, or use the number as targetPort.",
        ...created(object),
      };
    }
    return undefined;
  },
  ({ object, related: { pods } }) => {
    if (!hasSelector(object) || !pods?.length || object.spec.publishNotReadyAddresses) return undefined;
    const unready = pods.filter(({ pod }) => !isReady(pod) && !["Succeeded", "Failed"].includes(pod.status?.phase ?? ""));
    const ready = pods.filter(({ pod }) => isReady(pod)).length;
    if (ready > 0) return undefined;
    return {
      by: endpointsController,
      reason: "NoReadyPods",
      summary: `has no endpoint: none of ${plural(pods.length, "pod")} behind it is ready`,
      follow: unready.map(({ ref }) => ref),
      ...created(object),
    };
  },
  ({ object, related: { endpoints, pods } }) => {
    if (!hasSelector(object) || !pods?.some(({ pod }) => isReady(pod)) || hasAddresses(endpoints) !== false) return undefined;
    return {
      by: "explain",
      reason: "EndpointsMissing",
      summary: "its ready pods are not in its endpoints yet",
      remedy: "Check that the endpoints controller of kube-controller-manager runs.",
      ...created(object),
    };
  },
  ({ object }) => {
    if (object.spec.type !== "LoadBalancer" || (object.status?.loadBalancer?.ingress ?? []).length > 0) return undefined;
    const served = object.spec.loadBalancerClass;
    const what = typeof served === "string" ? `the load balancer class ${served}` : "Services of type LoadBalancer";
    return {
      by: "explain",
      reason: "NoLoadBalancer",
      summary: `no load balancer has given it an address: nothing in the cluster serves ${what}`,
      remedy: "Install a load balancer (coxswain-services has the part load-balancers), or use type NodePort.",
      ...created(object),
    };
  },
];

/** The pods that lack only one label of the selector. */
function nearest(selector: Readonly<Record<string, string>>, pods: readonly Pod[]): string | undefined {
  const wanted = Object.entries(selector);
  for (const { metadata } of pods) {
    const lacking = wanted.filter(([key, value]) => metadata.labels?.[key] !== value);
    const [first] = lacking;
    if (lacking.length !== 1 || first === undefined) continue;
    const [key] = first;
    const has = metadata.labels?.[key];
    if (wanted.length === 1 && has === undefined) continue;
    return `pod ${metadata.name} has ${has === undefined ? `no label ${key}` : `${key}=${has}`}`;
  }
  return undefined;
}

export const serviceKind = rulesFor<Service, ServiceFacts>({
  async gather(object, reader) {
    const { namespace = "", name = "" } = object.metadata;
    const selector = LabelSelector.fromSet(object.spec.selector);
    const pods = hasSelector(object) ? await reader.list<Pod>("pods", "", namespace, selector) : [];
    return {
      pods: pods
        ?.filter(({ metadata }) => !metadata.deletionTimestamp)
        .map((pod) => ({ pod, ref: reader.refOf(pod, "pods", "") })),
      others: pods?.length === 0 && hasSelector(object) ? ((await reader.list<Pod>("pods", "", namespace)) ?? []) : [],
      endpoints: await reader.get<Endpoints>("endpoints", "", namespace, name),
    };
  },
  rules: serviceRules,
});

/** Endpoints and EndpointSlices are as healthy as the Service they belong to. */
const behindService = (serviceOf: (object: KubeObject) => string | undefined) =>
  rulesFor<KubeObject, { exists: boolean }>({
    async gather(object, reader) {
      const name = serviceOf(object);
      const service = name === undefined ? "missing" : await reader.get("services", "", object.metadata.namespace ?? "", name);
      return { exists: isSeen(service) };
    },
    rules: [
      ({ object, related: { exists } }) => {
        const name = serviceOf(object);
        if (name === undefined || !exists) return undefined;
        return {
          by: endpointsController,
          reason: "ServiceNotWell",
          summary: `its service ${name} is not healthy`,
          follow: [refToObject("", "services", "Service", object.metadata.namespace ?? "", name)],
          onlyIfFollowed: true,
        };
      },
    ],
  });

export const endpointsKind = behindService(({ metadata }) => metadata.name);
export const endpointSliceKind = behindService(({ metadata }) => metadata.labels?.["kubernetes.io/service-name"]);

interface IngressFacts {
  readonly classes: readonly IngressClass[] | undefined;
  readonly services: readonly { readonly name: string; readonly port: string; readonly service: Look<Service> }[];
  readonly secrets: readonly { readonly name: string; readonly isMissing: boolean }[];
}

const defaultClass = "ingressclass.kubernetes.io/is-default-class";

const ingressRules: Rule<Ingress, IngressFacts>[] = [
  ({ object, related: { classes } }) => {
    const name = object.spec.ingressClassName ?? object.metadata.annotations?.["kubernetes.io/ingress.class"];
    if (classes === undefined) return undefined;
    if (
      name !== undefined &&
      object.spec.ingressClassName !== undefined &&
      !classes.some(({ metadata }) => metadata.name === name)
    ) {
      return {
        by: "explain",
        reason: "IngressClassMissing",
        summary: `ingress class ${name} does not exist: no controller serves it`,
        remedy: "Install an ingress controller with that class, or name one that exists: kubectl get ingressclass.",
        ...created(object),
      };
    }
    if (name !== undefined || classes.some(({ metadata }) => metadata.annotations?.[defaultClass] === "true")) return undefined;
    return {
      by: "explain",
      reason: "IngressClassNotSet",
      summary: `names no ingress class, and the cluster has no default one${classes.length > 0 ? ` (it has ${classes.map(({ metadata }) => metadata.name).join(", ")})` : ""}`,
      remedy: "Set spec.ingressClassName.",
      ...created(object),
    };
  },
  ({ object, related: { services } }) => {
    for (const { name, port, service } of services) {
      if (service === "missing") {
        return {
          by: "explain",
          reason: "BackendMissing",
          summary: `its backend service ${name} does not exist`,
          remedy: "Create the Service, or correct its name in the rules.",
          ...created(object),
        };
      }
      if (!isSeen(service)) continue;
      const ports = service.spec.ports ?? [];
      // Any port of another name may be reached when the service names none.
      if (service.spec.type === "ExternalName" && ports.length === 0) continue;
      if (ports.some((one) => one.name === port || String(one.port) === port)) continue;
      return {
        by: "explain",
        reason: "BackendPortMissing",
        summary: `its backend service ${name} has no port ${port} (it has ${ports.map((one) => one.name || one.port).join(", ")})`,
        remedy: "Correct the port in the rules.",
        ...created(object),
      };
    }
    return undefined;
  },
  ({ object, related: { secrets } }) => {
    const missing = secrets.find(({ isMissing }) => isMissing);
    if (missing === undefined) return undefined;
    return {
      by: "explain",
      reason: "TlsSecretMissing",
      summary: `TLS secret ${missing.name} does not exist`,
      remedy: "Create the secret with tls.crt and tls.key.",
      ...created(object),
    };
  },
  ({ object, related: { services } }) => ({
    by: "explain",
    reason: "BackendNotWell",
    summary: "a backend is not healthy",
    follow: services.map(({ name }) => refToObject("", "services", "Service", object.metadata.namespace ?? "", name)),
    onlyIfFollowed: true,
  }),
];

const backendsOf = ({ spec }: Ingress) => [
  spec.defaultBackend?.service,
  ...(spec.rules ?? []).flatMap(({ http }) => (http?.paths ?? []).map(({ backend }) => backend.service)),
];

export const ingressKind = rulesFor<Ingress, IngressFacts>({
  async gather(object, reader) {
    const { namespace = "" } = object.metadata;
    return {
      classes: await reader.list<IngressClass>("ingressclasses", "networking.k8s.io", ""),
      services: await Promise.all(
        backendsOf(object)
          .filter((one) => one !== undefined)
          .map(async ({ name, port }) => ({
            name,
            port: port?.name || String(port?.number ?? ""),
            service: await reader.get<Service>("services", "", namespace, name),
          })),
      ),
      secrets: await secretsOf(object, reader),
    };
  },
  rules: ingressRules,
});

async function secretsOf({ metadata, spec }: Ingress, reader: Reader): Promise<{ name: string; isMissing: boolean }[]> {
  const names = (spec.tls ?? []).map(({ secretName }) => secretName).filter((name) => name !== undefined && name !== "");
  return Promise.all(
    names.map(async (name) => ({
      name: name!,
      isMissing: (await reader.get("secrets", "", metadata.namespace ?? "", name!)) === "missing",
    })),
  );
}
