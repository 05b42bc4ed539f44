/**
 * The service `kubernetes` in the default namespace, by which pods reach the API: its first cluster IP, and as endpoints
 * the addresses of all API servers that are alive.
 * Source: pkg/controlplane/controller.go, pkg/controlplane/reconcilers/{lease,endpointsadapter}.go
 */
import { isIPv6 } from "node:net";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { endpointSlices, endpoints, services } from "@coxswain/apimachinery/schema/kinds/resources";
import { ensure } from "./ensure.ts";

const name = "kubernetes";
const namespace = "default";
export const reconcileIntervalMs = 10_000;

/** Who is alive: each server renews its own address, which is forgotten 15 s after. */
export interface ServerLeases {
  renew(address: string): Promise<void>;
  list(): Promise<string[]>;
  remove(address: string): Promise<void>;
}

export interface KubernetesServiceOptions {
  client: Client;
  /** undefined with --endpoint-reconciler-type=none: endpoints are left alone. */
  leases: ServerLeases | undefined;
  advertiseAddress: string;
  securePort: number;
  clusterIp: string;
  /** 0: ClusterIP. */
  nodePort: number;
  clock: Clock;
  log: Logger;
}

interface Service extends KubeObject {
  spec: { type?: string; ports?: object[]; sessionAffinity?: string; clusterIP?: string };
}
interface Endpoints extends KubeObject {
  subsets?: { addresses?: { ip: string }[]; ports?: object[] }[];
}
interface EndpointSlice extends KubeObject {
  addressType: string;
  endpoints: { addresses: string[]; conditions?: { ready?: boolean } }[];
  ports: object[];
}

/** Once; the controller below repeats it. */
export async function ensureKubernetesService(options: KubernetesServiceOptions, signal?: AbortSignal): Promise<void> {
  await ensureService(options, signal);
  if (options.leases === undefined) return;
  await options.leases.renew(options.advertiseAddress);
  await writeEndpoints(options, await options.leases.list(), signal);
}

/** @returns stops the loop and takes this server's address out of the endpoints. */
export function runKubernetesService(options: KubernetesServiceOptions): () => Promise<void> {
  let running: Promise<void> | undefined;
  const timer = options.clock.every(reconcileIntervalMs, () => {
    running ??= ensureKubernetesService(options)
      .catch((err: unknown) => options.log.warn("cannot reconcile the kubernetes service", { err: String(err) }))
      .finally(() => {
        running = undefined;
      });
  });
  return async () => {
    timer.cancel();
    await running;
    if (options.leases === undefined) return;
    await options.leases.remove(options.advertiseAddress);
    await writeEndpoints(options, await options.leases.list());
  };
}

async function ensureService(options: KubernetesServiceOptions, signal: AbortSignal | undefined): Promise<void> {
  const type = options.nodePort > 0 ? "NodePort" : "ClusterIP";
  const port = {
    name: "https",
    protocol: "TCP",
    port: 443,
    targetPort: options.securePort,
    ...(options.nodePort > 0 ? { nodePort: options.nodePort } : {}),
  };
  const wanted: Service = {
    metadata: { namespace, name, labels: { provider: "kubernetes", component: "apiserver" } },
    spec: { type, ports: [port], clusterIP: options.clusterIp, sessionAffinity: "None" },
  };
  await ensure<Service>(
    options.client,
    services,
    wanted,
    (existing) => {
      if (existing.spec.type === type && semanticEqual(existing.spec.ports, [port])) return undefined;
      return { ...existing, spec: { ...existing.spec, type, ports: [port] } };
    },
    signal,
  );
}

async function writeEndpoints(
  options: KubernetesServiceOptions,
  addresses: readonly string[],
  signal?: AbortSignal,
): Promise<void> {
  const sorted = [...new Set(addresses)].sort();
  const ports = [{ name: "https", port: options.securePort, protocol: "TCP" }];
  const subsets = sorted.length === 0 ? [] : [{ addresses: sorted.map((ip) => ({ ip })), ports }];
  await ensure<Endpoints>(
    options.client,
    endpoints,
    { metadata: { namespace, name, labels: { "endpointslice.kubernetes.io/skip-mirror": "true" } }, subsets },
    (existing) => {
      const skip = existing.metadata.labels?.["endpointslice.kubernetes.io/skip-mirror"] === "true";
      if (skip && semanticEqual(existing.subsets, subsets)) return undefined;
      const labels = { ...existing.metadata.labels, "endpointslice.kubernetes.io/skip-mirror": "true" };
      return { ...existing, metadata: { ...existing.metadata, labels }, subsets };
    },
    signal,
  );
  const addressType = isIPv6(options.advertiseAddress) ? "IPv6" : "IPv4";
  const slice: EndpointSlice = {
    metadata: { namespace, name, labels: { "kubernetes.io/service-name": name } },
    addressType,
    endpoints: sorted.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports,
  };
  await ensure<EndpointSlice>(
    options.client,
    endpointSlices,
    slice,
    (existing) => {
      if (semanticEqual(existing.endpoints, slice.endpoints) && semanticEqual(existing.ports, ports)) return undefined;
      return { ...existing, endpoints: slice.endpoints, ports };
    },
    signal,
  );
}
