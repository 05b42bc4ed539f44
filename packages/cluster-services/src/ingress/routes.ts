import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Ingress, IngressBackend } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { atOnce, Pace, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";

/** Where a request goes. */
export interface Route {
  readonly ingress: ObjectKey;
  readonly backend: Backend;
}

/** A port of a Service, by number or name; undefined for backends that are other resources, which are not served. */
export type Backend = { readonly service: ObjectKey; readonly port: number | string } | undefined;

/** What one host name's rules say. */
interface Host {
  readonly exact: Map<string, Route>;
  /** By path without a slash at its end. */
  readonly prefixes: Map<string, Route>;
  longestPrefix: number;
  fallback?: Route;
}

export interface RouteTable {
  /**
   * The route of a request, if any. Rules of the exact host are matched first, then those of the wildcard host, then those without host.
   * @param host in lower case, without port
   * @param path without query, see `routedPath`
   */
  match(host: string, path: string): Route | undefined;
}

/**
 * Pure: the rules of the Ingresses. Of two that say something about the same host and path the older Ingress decides.
 * Source: https://kubernetes.io/docs/concepts/services-networking/ingress/ (path types, examples, hostname wildcards)
 */
export function newRouteTable(ingresses: readonly Ingress[]): RouteTable {
  return atOnce(makingRouteTable(ingresses));
}

/** Paths between two yields: a hundred Ingresses may have 15,000 each. */
const pathsPerStep = 2000;

export function* makingRouteTable(ingresses: readonly Ingress[]): Steps<RouteTable> {
  const pace = new Pace(pathsPerStep);
  const hosts = new Map<string, Host>();
  let fallback: Route | undefined;
  const hostOf = (name: string): Host => {
    const host = hosts.get(name) ?? { exact: new Map(), prefixes: new Map(), longestPrefix: 0 };
    hosts.set(name, host);
    return host;
  };
  for (const ingress of ingresses.toSorted(byAge)) {
    const routeTo = (backend: IngressBackend): Route => ({
      ingress: keyOf(ingress),
      backend: backendOf(ingress.metadata.namespace ?? "", backend),
    });
    const ownFallback = ingress.spec.defaultBackend === undefined ? undefined : routeTo(ingress.spec.defaultBackend);
    fallback ??= ownFallback;
    yield;
    for (const { host: name = "", http } of ingress.spec.rules ?? []) {
      if (pace.isDue()) yield;
      const host = hostOf(name.toLowerCase());
      if (ownFallback !== undefined) host.fallback ??= ownFallback;
      for (const { path = "/", pathType, backend } of http?.paths ?? []) {
        if (pace.isDue()) yield;
        if (pathType === "Exact") setOnce(host.exact, path, routeTo(backend));
        else {
          const prefix = withoutSlash(path);
          setOnce(host.prefixes, prefix, routeTo(backend));
          host.longestPrefix = Math.max(host.longestPrefix, prefix.length);
        }
      }
    }
  }
  return {
    match(name, path) {
      const candidates = [name, `*${name.slice(name.indexOf(".") >>> 0)}`, ""].flatMap((one) => hosts.get(one) ?? []);
      for (const host of candidates) {
        const route = host.exact.get(path) ?? longestPrefixOf(host, path);
        if (route !== undefined) return route;
      }
      return candidates.find((host) => host.fallback !== undefined)?.fallback ?? fallback;
    },
  };
}

/** The route of the longest prefix, by elements of the path. */
function longestPrefixOf({ prefixes, longestPrefix }: Host, path: string): Route | undefined {
  // No prefix is longer; without this a path of slashes would cost its length squared.
  let prefix = withoutSlash(path);
  if (prefix.length > longestPrefix) {
    const next = prefix[longestPrefix] === "/" ? longestPrefix : prefix.lastIndexOf("/", longestPrefix);
    prefix = prefix.slice(0, Math.max(next, 0));
  }
  for (;;) {
    const route = prefixes.get(prefix);
    if (route !== undefined || prefix === "") return route;
    prefix = prefix.slice(0, Math.max(prefix.lastIndexOf("/"), 0));
  }
}

const withoutSlash = (path: string): string => (path.endsWith("/") ? path.slice(0, -1) : path);

function setOnce<K, V>(map: Map<K, V>, key: K, value: V): void {
  if (!map.has(key)) map.set(key, value);
}

function backendOf(namespace: string, { service }: IngressBackend): Backend {
  const port = service?.port?.name || service?.port?.number;
  return service === undefined || port === undefined ? undefined : { service: `${namespace}/${service.name}`, port };
}

/** Pure: the backends that an Ingress names, for checks. */
export function backendsOf({ metadata, spec }: Ingress): Backend[] {
  const named = [
    spec.defaultBackend,
    ...(spec.rules ?? []).flatMap(({ http }) => http?.paths.map(({ backend }) => backend) ?? []),
  ];
  return named.flatMap((one) => (one === undefined ? [] : [backendOf(metadata.namespace ?? "", one)]));
}

function byAge(a: Ingress, b: Ingress): number {
  const created = ({ metadata }: Ingress): number => parseTime(metadata.creationTimestamp ?? "") ?? 0;
  return created(a) - created(b) || (keyOf(a) < keyOf(b) ? -1 : 1);
}

/** Pure: host of a `Host` header or `:authority`: in lower case, without port and final dot. */
export function hostNameOf(authority: string): string {
  const host = authority.startsWith("[") ? authority.replace(/\]:\d*$/, "]") : authority.replace(/:\d*$/, "");
  return host.toLowerCase().replace(/\.$/, "");
}

/**
 * Pure: the path that rules are matched with. `.` and `..` segments, also encoded ones, are resolved as servers resolve them, so
 * that a rule for a path cannot be bypassed by another spelling; the forwarded request keeps its original path.
 * @param target origin-form of a request's target, with the query
 */
export function routedPath(target: string): string {
  const path = target.split(/[?#]/, 1)[0]!;
  return /\/\.|%2e|\\/i.test(path) ? new URL(`http://host${path}`).pathname : path;
}
