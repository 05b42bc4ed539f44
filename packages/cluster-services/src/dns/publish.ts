/** The objects by which pods find this server: the Service kube-dns, and an EndpointSlice for each node. */

import { createHash } from "node:crypto";
import { isIPv6 } from "node:net";
import type { Client } from "@coxswain/apimachinery/client/client";
import { type Controller, done, newController } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy } from "@coxswain/apimachinery/controller/sources";
import type { Reconnection } from "@coxswain/apimachinery/informers/reconnection";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isAlreadyExists, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { endpointSlices, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { retryOnReturn } from "../server-away.ts";

const dnsNamespace = "kube-system";
const dnsServiceName = "kube-dns";
const serviceKey = `${dnsNamespace}/${dnsServiceName}`;
const manager = "coxswain-services";
const managedBy = { "endpointslice.kubernetes.io/managed-by": manager };

/** @param ip the cluster IP that kubelets give to pods */
export function dnsService(ip: string): Service {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      name: dnsServiceName,
      namespace: dnsNamespace,
      labels: {
        "k8s-app": "kube-dns",
        "kubernetes.io/cluster-service": "true",
        "kubernetes.io/name": "KubeDNS",
        "app.kubernetes.io/managed-by": manager,
      },
    },
    spec: {
      clusterIP: ip,
      // Pods use the server of their own node: all servers give the same answers, and a node that is down must not cause
      // timeouts on others.
      internalTrafficPolicy: "Local",
      ports: [
        { name: "dns", protocol: "UDP", port: 53, targetPort: 53 },
        { name: "dns-tcp", protocol: "TCP", port: 53, targetPort: 53 },
      ],
    },
  };
}

interface Listening {
  /** The node's addresses of one family. */
  readonly address: string;
  readonly port: number;
}

/** The slice of one address of a node; it is deleted with the Node. */
export function dnsSlice(node: KubeObject, { address, port }: Listening): EndpointSlice {
  const { name: nodeName = "", uid = "" } = node.metadata;
  const family = isIPv6(address) ? "IPv6" : "IPv4";
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: sliceName(nodeName, family),
      namespace: dnsNamespace,
      labels: { "kubernetes.io/service-name": dnsServiceName, ...managedBy },
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name: nodeName, uid }],
    },
    addressType: family,
    endpoints: [{ addresses: [address], conditions: { ready: true }, nodeName }],
    ports: [
      { name: "dns", protocol: "UDP", port },
      { name: "dns-tcp", protocol: "TCP", port },
    ],
  };
}

/** `kube-dns-<node>-ipv4`; long names of nodes are cut, with a hash. */
function sliceName(nodeName: string, family: string): string {
  const suffix = `-${family.toLowerCase()}`;
  const name = `${dnsServiceName}-${nodeName}`;
  if (name.length + suffix.length <= 253) return name + suffix;
  return `${name.slice(0, 230)}-${createHash("sha256").update(nodeName).digest("hex").slice(0, 10)}${suffix}`;
}

type ServicePlan = "create" | "keep" | "standBack";

/** Pure: a Service with a selector belongs to another DNS server, whose endpoints must not be mixed with this one's. */
export function planService(existing: Service | undefined): ServicePlan {
  if (existing === undefined) return "create";
  const { selector = {}, type } = existing.spec ?? {};
  return Object.keys(selector).length > 0 || type === "ExternalName" ? "standBack" : "keep";
}

interface PublisherOptions {
  readonly client: Client;
  readonly reconnection: Reconnection;
  readonly services: SharedInformer<Service>;
  readonly slices: SharedInformer<EndpointSlice>;
  readonly node: KubeObject;
  readonly listening: readonly Listening[];
  readonly ip: string;
  readonly log: Logger;
  readonly clock: Clock;
}

interface Publisher {
  readonly run: Controller["run"];
  /** Why pods cannot reach this server; undefined when they can. */
  readonly problem: string | undefined;
  /** Deletes the slices, so that no queries are sent to a stopped server. */
  withdraw(signal: AbortSignal): Promise<void>;
}

export function newPublisher(options: PublisherOptions): Publisher {
  const { client, node, ip, log, clock } = options;
  const wanted = options.listening.map((one) => dnsSlice(node, one));
  const names = new Set(wanted.map(({ metadata }) => metadata.name));
  let problem: string | undefined = "the Service kube-dns was not looked at yet";

  const publish = async (slice: EndpointSlice, signal: AbortSignal): Promise<void> => {
    const known = options.slices.lister.get(`${dnsNamespace}/${slice.metadata.name}`);
    if (known !== undefined && isSameSlice(known, slice)) return;
    if (known === undefined) {
      await client.create(endpointSlices, slice, { signal }).catch((err: unknown) => {
        if (!isAlreadyExists(err)) throw err; // the cache is behind; its event enqueues again
      });
      return;
    }
    // The address type is immutable; everything else is replaced.
    const { resourceVersion } = known.metadata;
    await client.update(
      endpointSlices,
      { ...slice, metadata: { ...slice.metadata, resourceVersion } },
      {
        signal,
      },
    );
  };
  const withdraw = async (signal: AbortSignal): Promise<void> => {
    const deletions = [...names].map(async (name) => {
      await client.delete(endpointSlices, { namespace: dnsNamespace, name: name! }, { signal }).catch((err: unknown) => {
        if (!isNotFound(err)) throw err;
      });
    });
    const failed = (await Promise.allSettled(deletions)).find(({ status }) => status === "rejected");
    if (failed?.status === "rejected") throw failed.reason;
  };
  const reconcile = async (_: string, signal: AbortSignal) => {
    const service = options.services.lister.get(serviceKey);
    const plan = planService(service);
    if (plan === "standBack") {
      problem = "the Service kube-system/kube-dns belongs to another DNS server";
      log.warn("not publishing this DNS server", { reason: problem });
      await withdraw(signal);
      return done;
    }
    try {
      if (plan === "create") await client.create(services, dnsService(ip), { signal });
    } catch (err) {
      if (!isAlreadyExists(err)) {
        problem = `the Service kube-system/kube-dns cannot be created: ${messageOf(err)}`;
        throw err;
      }
    }
    for (const slice of wanted) await publish(slice, signal);
    const actual = service?.spec?.clusterIP ?? ip;
    problem = actual === ip ? undefined : `the Service kube-system/kube-dns has the address ${actual}, not ${ip}`;
    return done;
  };
  const controller = newController({
    name: "dns-publisher",
    sources: [
      enqueueBy(options.services, ({ enqueue }) =>
        onChange<Service>(enqueue, ({ metadata }) => metadata.name === dnsServiceName),
      ),
      enqueueBy(options.slices, ({ enqueue }) => onChange<EndpointSlice>(enqueue, ({ metadata }) => names.has(metadata.name))),
    ],
    reconcile: retryOnReturn(options.reconnection, reconcile),
    log,
    clock,
  });
  controller.enqueue(serviceKey);
  return {
    run: (signal) => controller.run(signal),
    withdraw,
    get problem() {
      return problem;
    },
  };
}

function onChange<T extends KubeObject>(enqueue: (key: string) => void, concerns: (object: T) => boolean) {
  const changed = (object: T): void => {
    if (object.metadata.namespace === dnsNamespace && concerns(object)) enqueue(serviceKey);
  };
  return { added: changed, updated: (_: T, now: T) => changed(now), deleted: changed };
}

function isSameSlice(known: EndpointSlice, wanted: EndpointSlice): boolean {
  const [endpoint] = known.endpoints;
  const ports = known.ports.map(({ name, protocol, port }) => ({ name, protocol, port }));
  return (
    known.endpoints.length === 1 &&
    endpoint?.conditions?.ready === true &&
    endpoint.nodeName === wanted.endpoints[0]?.nodeName &&
    deepEqual(endpoint.addresses, wanted.endpoints[0]?.addresses) &&
    deepEqual(ports, wanted.ports) &&
    known.metadata.labels?.["kubernetes.io/service-name"] === dnsServiceName &&
    deepEqual(known.metadata.ownerReferences?.[0]?.uid, wanted.metadata.ownerReferences?.[0]?.uid)
  );
}
