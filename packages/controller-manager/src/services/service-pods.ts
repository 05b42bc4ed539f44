import { enqueueBy, enqueueSelf, type Source } from "@coxswain/apimachinery/controller/sources";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Pod, Service, ServicePort } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { isFinished, isReady } from "../pods/pod-state.ts";

/** Shared by the controllers that map Services to Pods. Source: k8s.io/kubernetes pkg/controller/util/endpoint */
export function isSelectedBy(pod: Pod, service: Service): boolean {
  const { selector } = service.spec ?? {};
  if (selector === undefined) return false;
  const labels = pod.metadata.labels ?? {};
  let isEmpty = true;
  // Creates no list of entries, because each Pod is compared with all Services of its namespace.
  for (const key in selector) {
    if (labels[key] !== selector[key] || !Object.hasOwn(labels, key)) return false;
    isEmpty = false;
  }
  return !isEmpty;
}

/** Pods selected by the Service. */
export function podsOf(informers: InformerFactory, service: Service): Pod[] {
  const podInformer = informers.for<Pod>(pods);
  podInformer.addIndex(labelIndex, byLabel);
  const { namespace } = service.metadata;
  const { selector = {} } = service.spec ?? {};
  // Uses the label that the fewest Pods have: others may be common to all Pods of the namespace.
  let fewest: Pod[] | undefined;
  for (const key in selector) {
    const candidates = podInformer.lister.byIndex(labelIndex, labelIn(namespace, key, selector[key]));
    if (fewest === undefined || candidates.length < fewest.length) fewest = candidates;
    if (fewest.length === 0) break;
  }
  const ofManyLabels = podInformer.lister.byIndex(labelIndex, manyLabelsIn(namespace));
  return [...(fewest ?? []), ...ofManyLabels].filter((pod) => isSelectedBy(pod, service));
}

/** Services that select one of these versions of a Pod. */
function servicesOf(serviceInformer: SharedInformer<Service>, versions: readonly Pod[]): Service[] {
  serviceInformer.addIndex(selectorIndex, byFirstOfSelector);
  const found = new Set<Service>();
  for (const pod of versions) {
    const { namespace = "", labels = {} } = pod.metadata;
    if (hasManyLabels(labels)) {
      for (const service of serviceInformer.lister.inNamespace(namespace)) if (isSelectedBy(pod, service)) found.add(service);
      continue;
    }
    for (const label of byLabel(pod)) {
      for (const service of serviceInformer.lister.byIndex(selectorIndex, label)) {
        if (isSelectedBy(pod, service)) found.add(service);
      }
    }
  }
  return [...found];
}

const labelIndex = "label";
function byLabel({ metadata: { namespace, labels = {} } }: Pod): string[] {
  if (hasManyLabels(labels)) return [manyLabelsIn(namespace)];
  return Object.keys(labels).map((key) => labelIn(namespace, key, labels[key]));
}

/** Pods of more labels, of which a Pod may have 100,000, have one index value together, and their labels are not compared. */
const mostIndexedLabels = 256;
/** A pure cache: listing 100,000 labels takes 10 ms, and several controllers ask. */
const manyLabels = new WeakSet<object>();
function hasManyLabels(labels: Readonly<Record<string, string>>): boolean {
  if (manyLabels.has(labels)) return true;
  const isMany = Object.keys(labels).length > mostIndexedLabels;
  if (isMany) manyLabels.add(labels);
  return isMany;
}

/** Index of Services by the first label of their selector, which all of their Pods have. */
const selectorIndex = "first-of-selector";
function byFirstOfSelector({ metadata, spec }: Service): string[] {
  const { selector = {} } = spec ?? {};
  for (const key in selector) return [labelIn(metadata.namespace, key, selector[key])];
  return [];
}

/** No label has an empty key. */
const manyLabelsIn = (namespace: string | undefined): string => labelIn(namespace, "");
const labelIn = (namespace = "", key: string, value = ""): string => `${namespace}/${key}=${value}`;

/** Whether the Pod can be an endpoint: not finished, with an address, and not terminating unless included. */
export function countsAsEndpoint(pod: Pod, includeTerminating: boolean): boolean {
  if (isFinished(pod.status?.phase) || addressesOf(pod).length === 0) return false;
  return includeTerminating || !pod.metadata.deletionTimestamp;
}

/** IP addresses of the Pod: `podIPs`, or `podIP` when only that is set. */
export function addressesOf({ status }: Pod): string[] {
  const listed = (status?.podIPs ?? []).map(({ ip }) => ip ?? "").filter((ip) => ip !== "");
  return listed.length > 0 ? listed : status?.podIP ? [status.podIP] : [];
}

/** The address is not validated: whatever has a colon is IPv6. */
export function ipFamilyOf(address: string): "IPv4" | "IPv6" {
  return address.includes(":") ? "IPv6" : "IPv4";
}

/**
 * Address families of a Service. Without `ipFamilies` (older objects) they are derived from the cluster IP; a headless
 * Service may have both.
 */
export function familiesOf({ spec }: Service): ("IPv4" | "IPv6")[] {
  // cast: the API server accepts no others
  if (spec?.ipFamilies !== undefined && spec.ipFamilies.length > 0) return spec.ipFamilies as ("IPv4" | "IPv6")[];
  const { clusterIP } = spec ?? {};
  return clusterIP && clusterIP !== "None" ? [ipFamilyOf(clusterIP)] : ["IPv4", "IPv6"];
}

export function isHeadless({ spec }: Service): boolean {
  return spec?.clusterIP === "None";
}

export function publishesNotReady({ spec }: Service): boolean {
  return spec?.publishNotReadyAddresses === true;
}

/**
 * Resolves the ports of a Service for each of its Pods. Pods with the same numbers get the same list, so that the work for a
 * Service with many ports and many Pods is not the product of both.
 * @param make builds the entry of a resolved port; ports whose name the Pod does not have are left out
 */
export function portsResolver<T>(service: Service, make: (servicePort: ServicePort, port: number) => T): (pod: Pod) => T[] {
  const servicePorts = service.spec?.ports ?? [];
  const names = namesIn(servicePorts);
  const listsByNumbers = new Map<string, T[]>();
  const listsByContent = new Map<string, T[]>();
  return (pod) => {
    const numbers = names.size === 0 ? none : namedPorts(pod, names);
    return listsByNumbers.getOrInsertComputed(JSON.stringify([...numbers]), () => {
      const ports = servicePorts.flatMap((servicePort) => {
        const port = targetPortOf(numbers, servicePort);
        return port === undefined ? [] : [make(servicePort, port)];
      });
      return listsByContent.getOrInsert(JSON.stringify(ports), ports);
    });
  };
}

/** The first port of the Service whose name the Pod does not have. */
export function missingPort(service: Service, pod: Pod): ServicePort | undefined {
  const servicePorts = service.spec?.ports ?? [];
  const numbers = namedPorts(pod, namesIn(servicePorts));
  return servicePorts.find((servicePort) => targetPortOf(numbers, servicePort) === undefined);
}

function namesIn(servicePorts: readonly ServicePort[]): Set<string> {
  return new Set(servicePorts.flatMap(({ targetPort }) => (typeof targetPort === "string" ? [targetPort] : [])));
}

const none: ReadonlyMap<string, number> = new Map();

const portKey = (name: string, protocol = "TCP"): string => `${protocol}/${name}`;

/** Numbers of the Pod's ports that have one of these names, by protocol and name; of several, the first counts. */
function namedPorts({ spec }: Pod, names: ReadonlySet<string>): Map<string, number> {
  const numbers = new Map<string, number>();
  for (const { ports = [] } of spec.containers) {
    for (const { name, protocol, containerPort } of ports ?? []) {
      if (name !== undefined && names.has(name)) numbers.getOrInsert(portKey(name, protocol), containerPort);
    }
  }
  return numbers;
}

/** The Pod's port number for a Service port; undefined when the Pod has no port of that name. */
function targetPortOf(named: ReadonlyMap<string, number>, { targetPort, port, protocol }: ServicePort): number | undefined {
  if (targetPort === undefined || targetPort === 0 || targetPort === "") return port;
  return typeof targetPort === "number" ? targetPort : named.get(portKey(targetPort, protocol));
}

/** The Pod's hostname in the DNS of a headless Service. */
export function hostnameIn({ metadata, spec }: Pod, service: Service): string | undefined {
  const named = spec.hostname && spec.subdomain === service.metadata.name && metadata.namespace === service.metadata.namespace;
  return named ? spec.hostname : undefined;
}

/** Event sources: Services, and Pod changes that affect endpoints, mapped to the Services that select or selected the Pod. */
export function serviceSources(informers: InformerFactory): Source[] {
  const serviceInformer = informers.for<Service>(services);
  const podInformer = informers.for<Pod>(pods);
  // Before there are any objects: later the indexes of tens of thousands would be made in one turn.
  podInformer.addIndex(labelIndex, byLabel);
  serviceInformer.addIndex(selectorIndex, byFirstOfSelector);
  return [
    enqueueSelf(serviceInformer),
    enqueueBy(podInformer, (queue) => {
      const enqueueFor = (...versions: readonly Pod[]): void => {
        for (const service of servicesOf(serviceInformer, versions)) queue.enqueue(keyOf(service));
      };
      return {
        added: (pod: Pod) => enqueueFor(pod),
        updated(old: Pod, now: Pod) {
          const change = endpointChange(old, now);
          // Most changes leave the labels as they are; the old version then has the same Services.
          if (change === "labels") enqueueFor(old, now);
          else if (change === "other") enqueueFor(now);
        },
        deleted: (pod: Pod) => enqueueFor(pod),
      };
    }),
  ];
}

/**
 * Whether the change of the Pod affects endpoints: its labels, something else with the same labels, or nothing.
 * Source: endpointutil.podEndpointsChanged
 */
export function endpointChange(old: Pod, now: Pod): "labels" | "other" | "none" {
  if (old === now) return "none"; // a resync
  if (!sameLabels(old, now)) return "labels";
  // One by one, the likeliest first: this runs for each change of each Pod, in several controllers.
  const isOther =
    isReady(old) !== isReady(now) ||
    Boolean(old.metadata.deletionTimestamp) !== Boolean(now.metadata.deletionTimestamp) ||
    isFinished(old.status?.phase) !== isFinished(now.status?.phase) ||
    !deepEqual(addressesOf(old), addressesOf(now)) ||
    (old.spec.nodeName ?? "") !== (now.spec.nodeName ?? "") ||
    (old.spec.hostname ?? "") !== (now.spec.hostname ?? "") ||
    (old.spec.subdomain ?? "") !== (now.spec.subdomain ?? "") ||
    (old.metadata.uid ?? "") !== (now.metadata.uid ?? "");
  return isOther ? "other" : "none";
}

/** Many labels count as changed: to look at the Pod's Services again takes less time than to compare them. */
function sameLabels({ metadata: before }: Pod, { metadata: after }: Pod): boolean {
  const [old, now] = [before.labels ?? noLabels, after.labels ?? noLabels];
  if (hasManyLabels(old) || hasManyLabels(now)) return false;
  let more = 0;
  for (const key in old) {
    if (old[key] !== now[key]) return false; // what an object inherits is no string
    more++;
  }
  for (const _ in now) more--;
  return more === 0;
}

const noLabels: Readonly<Record<string, string>> = {};
