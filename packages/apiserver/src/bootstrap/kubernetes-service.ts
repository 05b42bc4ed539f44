/**
 * The service `kubernetes` in the default namespace, through which pods reach the API: the first cluster IP, and the
 * addresses of all live API servers as endpoints.
 * Source: pkg/controlplane/controller.go, pkg/controlplane/reconcilers/{lease,endpointsadapter}.go
 */
import { isIPv6 } from "node:net";
import type { Client } from "@coxswain/apimachinery/client/client";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { endpointSlices, endpoints, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { ensure } from "./ensure.ts";

const name = "kubernetes";
const namespace = "default";
const skipMirror = "endpointslice.kubernetes.io/skip-mirror";
const reconcileIntervalMs = 10_000;
/** Time limit for removing the address: each of several calls to an etcd that does not respond takes 10 s. */
const longestLeaveMs = 2_000;

/** Maps the current endpoint addresses to the desired ones. */
export type Members = (current: readonly string[]) => readonly string[];

/** Tracks which API servers are alive, for the endpoints. */
export interface LiveServers {
  /** Registers this server, or renews its registration. */
  renew(address: string): Promise<Members>;
  /** Removes this server. */
  remove(address: string): Promise<Members>;
}

export interface KubernetesServiceOptions {
  client: Client;
  /** undefined with --endpoint-reconciler-type=none: endpoints are not managed. */
  servers: LiveServers | undefined;
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

export interface KubernetesServiceLoop {
  /** Resolves after the first reconciliation, whether or not it succeeded. */
  readonly begun: Promise<void>;
  /**
   * Stops the loop and removes this server's address from the endpoints, unless that takes longer than `longestLeaveMs`, for example
   * without etcd: then the other servers remove the address when the lease has expired. Never rejects.
   */
  stop(): Promise<void>;
}

/**
 * Maintains the service, and this server's address in its endpoints. Call it when the server is ready, since clients are
 * routed here from then on.
 */
export function runKubernetesService(options: KubernetesServiceOptions): KubernetesServiceLoop {
  let running: Promise<void> | undefined;
  const reconcile = (): Promise<void> => {
    running ??= reconcileOnce(options)
      .catch((err: unknown) => options.log.warn("cannot reconcile the kubernetes service", { err: String(err) }))
      .finally(() => {
        running = undefined;
      });
    return running;
  };
  const timer = options.clock.every(reconcileIntervalMs, () => void reconcile()); // logs its errors
  return {
    begun: reconcile(),
    async stop() {
      timer.cancel();
      const { clock, log } = options;
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const limit = clock.after(longestLeaveMs, () => {
        log.warn("gave up removing this server from the endpoints of the kubernetes service", { afterMs: longestLeaveMs });
        resolve();
      });
      await Promise.race([late, leave().catch(couldNotLeave)]);
      limit.cancel();
    },
  };

  async function leave(): Promise<void> {
    await running;
    if (options.servers === undefined) return;
    await writeEndpoints(options, await options.servers.remove(options.advertiseAddress));
  }

  function couldNotLeave(err: unknown): void {
    options.log.warn("cannot remove this server from the endpoints of the kubernetes service", { err: String(err) });
  }
}

async function reconcileOnce(options: KubernetesServiceOptions): Promise<void> {
  await ensureKubernetesService(options);
  if (options.servers !== undefined) await writeEndpoints(options, await options.servers.renew(options.advertiseAddress));
}

/** Maintains the service without endpoints, which does not require a ready server. */
export async function ensureKubernetesService(options: KubernetesServiceOptions, signal?: AbortSignal): Promise<void> {
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

/** Sort order of addresses in endpoints. */
export function byAddress(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}

async function writeEndpoints(options: KubernetesServiceOptions, members: Members): Promise<void> {
  const ports = [{ name: "https", port: options.securePort, protocol: "TCP" }];
  const subsetsOf = (addresses: readonly string[]) =>
    addresses.length === 0 ? [] : [{ addresses: addresses.map((ip) => ({ ip })), ports }];
  let addresses = [...members([])].sort(byAddress);
  await ensure<Endpoints>(
    options.client,
    endpoints,
    { metadata: { namespace, name, labels: { [skipMirror]: "true" } }, subsets: subsetsOf(addresses) },
    (existing) => {
      addresses = [...members(addressesOf(existing))].sort(byAddress);
      const subsets = subsetsOf(addresses);
      if (existing.metadata.labels?.[skipMirror] === "true" && semanticEqual(existing.subsets, subsets)) return undefined;
      return {
        ...existing,
        metadata: { ...existing.metadata, labels: { ...existing.metadata.labels, [skipMirror]: "true" } },
        subsets,
      };
    },
  );
  await writeSlice(options.client, addresses, ports);
}

/** A slice holds addresses of one family: IPv6 when all are, otherwise IPv4, without the others. */
async function writeSlice(client: Client, addresses: readonly string[], ports: object[]): Promise<void> {
  const isV6 = addresses.length > 0 && addresses.every((address) => isIPv6(address));
  const labels = { "kubernetes.io/service-name": name };
  const slice: EndpointSlice = {
    metadata: { namespace, name, labels },
    addressType: isV6 ? "IPv6" : "IPv4",
    endpoints: addresses
      .filter((address) => isIPv6(address) === isV6)
      .map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports,
  };
  const { endpoints: wanted, addressType } = slice;
  let isOfOtherType = false;
  const bring = (existing: EndpointSlice): EndpointSlice | undefined => {
    isOfOtherType = existing.addressType !== addressType;
    const isRight =
      semanticEqual(existing.endpoints, wanted) &&
      semanticEqual(existing.ports, ports) &&
      semanticEqual(existing.metadata.labels, labels);
    if (isOfOtherType || isRight) return undefined;
    return { ...existing, metadata: { ...existing.metadata, labels }, endpoints: wanted, ports };
  };
  await ensure(client, endpointSlices, slice, bring);
  if (!isOfOtherType) return;
  // The address type is immutable.
  await client.delete(endpointSlices, { namespace, name });
  await ensure(client, endpointSlices, slice, bring);
}

/** The server manages a single subset; anything else is overwritten. */
function addressesOf({ subsets }: Endpoints): string[] {
  return subsets?.length === 1 ? (subsets[0]?.addresses ?? []).map(({ ip }) => ip) : [];
}
