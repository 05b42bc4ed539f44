import type { Lister } from "@coxswain/apimachinery/informers/lister";
import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Service, ServicePort } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import type { Backend } from "./routes.ts";

/** Endpoints of a port of a Service, as `http://10.244.0.7:8080`; or why there are none. The URLs are made when they are read. */
type Endpoints = { readonly urls: readonly string[] } | { readonly problem: Problem };
interface Problem {
  readonly reason: "MissingService" | "MissingPort" | "NotServed" | "NoEndpoints";
  /** For the users of the Ingress; clients do not see it. */
  readonly message: string;
}

interface BackendsOptions {
  readonly services: Lister<Service>;
  /** @param service key */
  readonly slicesOf: (service: ObjectKey) => readonly EndpointSlice[];
  readonly isRefused: (address: string) => boolean;
  /** On which `isRefused` depends: another value, and all is looked up anew. */
  readonly addresses?: () => unknown;
}

/** Finds the endpoints of backends and caches them until `changed` is called. */
export class Backends {
  readonly #options: BackendsOptions;
  readonly #known = new Map<ObjectKey, KnownService>();
  readonly #turns = new Map<ObjectKey, number>();
  #addresses: unknown;

  constructor(options: BackendsOptions) {
    this.#options = options;
  }

  /** @param service undefined: all of them, as when addresses of nodes have changed */
  changed(service?: ObjectKey): void {
    if (service === undefined) this.#known.clear();
    else this.#known.delete(service);
    if (service !== undefined && this.#options.services.get(service) === undefined) this.#turns.delete(service);
  }

  /** Cached until the Service, its slices or the addresses of nodes change. A result without endpoints has a `problem`. */
  endpointsOf(backend: Backend): Endpoints {
    if (backend === undefined) return { problem: { reason: "NotServed", message: "a backend is not a Service" } };
    const { service: key, port } = backend;
    const addresses = this.#options.addresses?.();
    if (addresses !== this.#addresses) this.#known.clear();
    this.#addresses = addresses;
    const { services, slicesOf, isRefused } = this.#options;
    const service = services.get(key);
    if (service?.spec === undefined) return problem("MissingService", `there is no Service ${key}`);
    const known = this.#known.getOrInsertComputed(key, () => readService(service, slicesOf(key), isRefused));
    return known.byPort.getOrInsertComputed(port, () => resolve(key, port, known));
  }

  /** The endpoints, rotated by one at each call. */
  inTurn({ service }: { readonly service: ObjectKey }, urls: readonly string[]): readonly string[] {
    const turn = (this.#turns.get(service) ?? -1) + 1;
    this.#turns.set(service, turn % 2 ** 30);
    const first = turn % urls.length;
    return [...urls.slice(first, first + mostAttempts), ...urls.slice(0, Math.max(0, first + mostAttempts - urls.length))].slice(
      0,
      Math.min(mostAttempts, urls.length),
    );
  }
}

/** Endpoints that one request is sent to, if the connections to the first ones fail. */
const mostAttempts = 3;

/** A Service that was looked up once for all of its ports: an Ingress may name thousands of them. */
interface KnownService {
  readonly isExternal: boolean;
  /** By number and by name; of several the first. */
  readonly ports: ReadonlyMap<number | string, ServicePort>;
  readonly slices: readonly KnownSlice[];
  readonly byPort: Map<number | string, Endpoints>;
}

interface KnownSlice {
  readonly targets: ReadonlyMap<string, number | undefined>;
  /** Ready endpoints, as in URLs. */
  readonly hosts: readonly string[];
  /** The last ready endpoint that is refused. */
  readonly refused: string | undefined;
}

function readService({ spec }: Service, slices: readonly EndpointSlice[], isRefused: (address: string) => boolean): KnownService {
  const ports = new Map<number | string, ServicePort>();
  for (const one of spec?.ports ?? []) {
    ports.getOrInsert(one.port, one);
    if (one.name !== undefined) ports.getOrInsert(one.name, one);
  }
  return {
    isExternal: spec?.type === "ExternalName",
    ports,
    slices: slices.filter(({ addressType }) => addressType !== "FQDN").map((slice) => readSlice(slice, isRefused)),
    byPort: new Map(),
  };
}

function readSlice({ ports, endpoints }: EndpointSlice, isRefused: (address: string) => boolean): KnownSlice {
  const targets = new Map<string, number | undefined>();
  for (const { name, port } of ports ?? []) targets.getOrInsert(name ?? "", port);
  const ready = endpoints.flatMap(({ addresses: [address = ""], conditions }) => (conditions?.ready === false ? [] : [address]));
  const hosts = ready.filter((address) => !isRefused(address));
  return {
    targets,
    hosts: hosts.map((address) => (address.includes(":") ? `[${address}]` : address)),
    refused: ready.findLast(isRefused),
  };
}

const problem = (reason: Problem["reason"], message: string): Endpoints => ({ problem: { reason, message } });

/** Pure. */
function resolve(key: ObjectKey, port: number | string, { isExternal, ports, slices }: KnownService): Endpoints {
  if (isExternal) return problem("NotServed", `the Service ${key} is of type ExternalName, which may name any address`);
  const found = ports.get(port);
  if (found === undefined) return problem("MissingPort", `the Service ${key} has no port ${port}`);
  if ((found.protocol ?? "TCP") !== "TCP") return problem("NotServed", `the port ${port} of the Service ${key} is not TCP`);
  const own = slices.flatMap(({ targets, ...slice }) => {
    const target = targets.get(found.name ?? "");
    return target === undefined ? [] : [{ ...slice, target }];
  });
  if (own.some(({ hosts }) => hosts.length > 0)) return urlsOf(own);
  const refused = own.findLast((slice) => slice.refused !== undefined)?.refused;
  if (refused !== undefined)
    return problem(
      "NotServed",
      `the Service ${key} has the endpoint ${refused}, which belongs to a node or is no address of a pod`,
    );
  return problem("NoEndpoints", `the Service ${key} has no ready endpoint at its port ${port}`);
}

/** A Service may have thousands of ports, each with thousands of endpoints. */
function urlsOf(slices: readonly (Pick<KnownSlice, "hosts"> & { readonly target: number })[]): Endpoints {
  let urls: readonly string[] | undefined;
  return {
    get urls() {
      urls ??= [...new Set(slices.flatMap(({ hosts, target }) => hosts.map((host) => `http://${host}:${target}`)))];
      return urls;
    },
  };
}
