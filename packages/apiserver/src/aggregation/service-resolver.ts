/**
 * Resolves a service to an address: its cluster IP, or with --enable-aggregator-routing the address of one of its endpoints,
 * for API servers without access to the service network.
 * Source: k8s.io/apiserver pkg/util/proxy/proxy.go, kube-aggregator pkg/apiserver/resolvers.go
 */
import { isIPv6 } from "node:net";
import type { Lister } from "@coxswain/apimachinery/informers/lister";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Endpoints, Service, ServicePort } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** An IP address, or the DNS name of an ExternalName service. */
export interface Location {
  readonly host: string;
  readonly port: number;
}

/** @throws Error with upstream's text when the service cannot be resolved. */
export type ServiceResolver = (namespace: string, name: string, port: number) => Location;

interface ServiceResolverOptions {
  readonly services: Pick<Lister<Service & KubeObject>, "get">;
  /** Set to route to endpoints; undefined to use the cluster IP. */
  readonly endpoints: Pick<Lister<Endpoints & KubeObject>, "get"> | undefined;
  /** Address of this server, used for default/kubernetes:443. */
  readonly self: () => Location;
  /** Random number in [0, 1); replaced in tests. */
  readonly random?: () => number;
}

export function newServiceResolver(options: ServiceResolverOptions): ServiceResolver {
  const { services, endpoints, self, random = Math.random } = options;
  return (namespace, name, port) => {
    if (namespace === "default" && name === "kubernetes" && port === 443) return self();
    const service = services.get(`${namespace}/${name}`);
    if (service === undefined) throw notFound({ group: "", resource: "service" }, name);
    if (endpoints === undefined) return clusterLocation(service, name, port);
    const servicePort = portOf(service, name, port);
    if (!hasAddress(service)) throw new Error(`unsupported service type ${goQuote(typeOf(service))}`);
    const found = endpoints.get(`${namespace}/${name}`);
    if (found === undefined) throw notFound({ group: "", resource: "endpoints" }, name);
    const location = someEndpoint(found, servicePort.name ?? "", random);
    if (location === undefined) throw new Error(`no endpoints available for service ${goQuote(name)}`);
    return location;
  };
}

/** `10.0.0.1:443`, `[fd00::1]:443` */
export function formatLocation({ host, port }: Location): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`;
}

function clusterLocation(service: Service, name: string, port: number): Location {
  if (typeOf(service) === "ExternalName") return { host: service.spec?.externalName ?? "", port };
  if (typeOf(service) === "ClusterIP" && service.spec?.clusterIP === "None") {
    throw new Error('cannot route to service with ClusterIP "None"');
  }
  if (!hasAddress(service)) throw new Error(`unsupported service type ${goQuote(typeOf(service))}`);
  return { host: service.spec?.clusterIP ?? "", port: portOf(service, name, port).port };
}

function typeOf({ spec }: Service): string {
  return spec?.type ?? "ClusterIP";
}

function hasAddress(service: Service): boolean {
  return ["ClusterIP", "NodePort", "LoadBalancer"].includes(typeOf(service));
}

function portOf({ spec }: Service, name: string, port: number): ServicePort {
  const found = spec?.ports?.find((candidate) => candidate.port === port);
  if (found === undefined) throw new Error(`no service port ${port} found for service ${goQuote(name)}`);
  return found;
}

/** A random address among all subsets with the port. */
function someEndpoint({ subsets = [] }: Endpoints, portName: string, random: () => number): Location | undefined {
  const pick = (count: number): number => Math.floor(random() * count);
  const first = pick(subsets.length);
  for (const subset of [...subsets.slice(first), ...subsets.slice(0, first)]) {
    const { addresses = [], ports = [] } = subset;
    const port = ports.find(({ name = "" }) => name === portName);
    const address = addresses[pick(addresses.length)];
    if (port !== undefined && address !== undefined) return { host: address.ip, port: port.port };
  }
  return undefined;
}
