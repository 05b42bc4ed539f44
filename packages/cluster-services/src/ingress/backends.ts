import type { Lister } from "@coxswain/apimachinery/informers/lister";
import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import type { Backend } from "./routes.ts";

/** Endpoints of a port of a Service, as `http://10.244.0.7:8080`; or why there are none. */
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
  readonly #known = new Map<ObjectKey, Map<number | string, Endpoints>>();
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
    let ports = this.#known.get(key);
    const known = ports?.get(port);
    if (known !== undefined) return known;
    const { services, slicesOf, isRefused } = this.#options;
    const service = services.get(key);
    const found = resolve({ key, port, service, slices: service === undefined ? [] : slicesOf(key), isRefused });
    if (service !== undefined) {
      ports ??= new Map();
      this.#known.set(key, ports.set(port, found));
    }
    return found;
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

/** Pure. */
function resolve({
  key,
  port,
  service,
  slices,
  isRefused,
}: {
  readonly key: ObjectKey;
  readonly port: number | string;
  readonly service: Service | undefined;
  readonly slices: readonly EndpointSlice[];
  readonly isRefused: (address: string) => boolean;
}): Endpoints {
  const problem = (reason: Problem["reason"], message: string): Endpoints => ({ problem: { reason, message } });
  if (service?.spec === undefined) return problem("MissingService", `there is no Service ${key}`);
  if (service.spec.type === "ExternalName")
    return problem("NotServed", `the Service ${key} is of type ExternalName, which may name any address`);
  const found = service.spec.ports?.find((one) => (typeof port === "number" ? one.port === port : one.name === port));
  if (found === undefined) return problem("MissingPort", `the Service ${key} has no port ${port}`);
  if ((found.protocol ?? "TCP") !== "TCP") return problem("NotServed", `the port ${port} of the Service ${key} is not TCP`);
  const urls = new Set<string>();
  let refused: string | undefined;
  for (const slice of slices) {
    if (slice.addressType === "FQDN") continue;
    const target = slice.ports?.find((one) => (one.name ?? "") === (found.name ?? ""))?.port;
    if (target === undefined) continue;
    for (const { addresses, conditions } of slice.endpoints) {
      const [address = ""] = addresses;
      if (conditions?.ready === false) continue;
      if (isRefused(address)) refused = address;
      else urls.add(`http://${address.includes(":") ? `[${address}]` : address}:${target}`);
    }
  }
  if (urls.size > 0) return { urls: [...urls] };
  if (refused !== undefined)
    return problem(
      "NotServed",
      `the Service ${key} has the endpoint ${refused}, which belongs to a node or is no address of a pod`,
    );
  return problem("NoEndpoints", `the Service ${key} has no ready endpoint at its port ${port}`);
}
