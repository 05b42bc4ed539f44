/**
 * What the cluster's names mean: pure lookups in Services, EndpointSlices and Namespaces.
 * Source: Kubernetes DNS-Based Service Discovery 1.1.0; where it leaves a choice, as CoreDNS' kubernetes plugin
 */
import { isIPv4, isIPv6 } from "node:net";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { addressRecord, encodeName, isEncodable, nameRecord, soaRecord, srvRecord, txtRecord } from "./encode-record.ts";
import { types } from "./protocol.ts";
import type { ResourceRecord } from "./reply.ts";
import { addressKey, type EndpointRecord, recordsOfService, recordsOfSlice, type ServiceRecords } from "./service-records.ts";

/** The cluster as the informers know it. */
export interface ClusterView {
  service(key: string): Service | undefined;
  slicesOf(serviceKey: string): readonly EndpointSlice[];
  servicesAt(addressKey: string): readonly Service[];
  slicesAt(addressKey: string): readonly EndpointSlice[];
  hasNamespace(name: string): boolean;
}

export interface ZoneOptions {
  /** `cluster.local`. */
  readonly domain: string;
  /** Addresses of the DNS Service. */
  readonly dnsAddresses: readonly string[];
  /** Whether `10-244-0-5.<namespace>.pod.<domain>` is answered, without a look at the pods. */
  readonly podRecords: boolean;
  /** Serial of the SOA record; constant, because nothing transfers the zone. */
  readonly serial: number;
}

/** What is known about a name: records of any type that it has; absent: the name does not exist. */
export interface Found {
  readonly records: readonly ResourceRecord[];
  /** Name that the answer continues with. */
  readonly alias?: string;
  readonly additionals?: readonly ResourceRecord[];
}

export interface Zone {
  /** @returns the part of a name of this zone before the domain, `""` for the domain itself; undefined for other names */
  relative(name: string): string | undefined;
  /** @param relative lower case */
  find(relative: string, type: number): Found | undefined;
  /** @returns undefined when the name is none of the cluster's addresses */
  findReverse(name: string): Found | undefined;
  readonly soa: ResourceRecord;
}

/** More than the longest response has room for: the shortest record takes 16 bytes of 65,535. */
const mostRecords = 4096;

/** Version of the specification. */
const schemaVersion = "1.1.0";
const exists: Found = { records: [] };

export function newZone(view: ClusterView, options: ZoneOptions): Zone {
  const { domain } = options;
  const suffix = `.${domain}`;
  const fixed: Readonly<Record<string, Found>> = {
    "": { records: [soaRecord(domain, options.serial), nameRecord("NS", `ns.dns.${domain}`)] },
    "dns-version": { records: [txtRecord(schemaVersion)] },
    dns: exists,
    "ns.dns": { records: options.dnsAddresses.map(addressRecord) },
    svc: exists,
    pod: exists,
  };

  const namespace = (name: string): Found | undefined => (view.hasNamespace(name) ? exists : undefined);
  const service = (labels: readonly string[], type: number): Found | undefined => {
    const [name = "", inNamespace = ""] = labels.slice(-2);
    const key = `${inNamespace}/${name}`;
    const object = view.service(key);
    if (object === undefined) return undefined;
    const target: ServiceTarget = {
      name: `${name}.${inNamespace}.svc.${domain}`,
      records: recordsOfService(object),
      slices: () => view.slicesOf(key),
    };
    return findInService(target, labels.slice(0, -2), type);
  };

  return {
    soa: soaRecord(domain, options.serial),
    relative: (name) => (name.endsWith(suffix) ? name.slice(0, -suffix.length) : name === domain ? "" : undefined),
    find(relative, type) {
      if (Object.hasOwn(fixed, relative)) return fixed[relative];
      const labels = relative.split(".");
      const kind = labels.pop();
      if (labels.length === 1 && (kind === "svc" || kind === "pod")) return namespace(labels[0]!);
      if (kind === "svc") return service(labels, type);
      if (kind !== "pod" || labels.length !== 2 || !options.podRecords) return undefined;
      const [label = "", inNamespace = ""] = labels;
      const ip = addressOfLabel(label);
      if (ip === undefined || namespace(inNamespace) === undefined) return undefined;
      return { records: [addressRecord(ip)] };
    },
    findReverse(name) {
      const key = reverseKey(name);
      if (key === undefined) return undefined;
      const targets = view.servicesAt(key).map(({ metadata }) => `${metadata.name}.${metadata.namespace}.svc${suffix}`);
      for (const slice of view.slicesAt(key)) {
        const endpoint = recordsOfSlice(slice).at(key);
        const of = slice.metadata.labels?.["kubernetes.io/service-name"];
        if (endpoint !== undefined && of) targets.push(`${endpoint.hostname}.${of}.${slice.metadata.namespace}.svc${suffix}`);
      }
      if (targets.length === 0) return undefined;
      return { records: [...new Set(targets)].filter(isEncodable).map((target) => nameRecord("PTR", target)) };
    },
  };
}

interface ServiceTarget {
  readonly name: string;
  readonly records: ServiceRecords;
  readonly slices: () => readonly EndpointSlice[];
}

/** @param labels those before the Service's: none, `<hostname>`, `_<protocol>` or `_<port>._<protocol>` */
function findInService({ name, records, slices }: ServiceTarget, labels: readonly string[], type: number): Found | undefined {
  const { headless, externalName } = records;
  if (externalName !== undefined) {
    if (labels.length > 0 || !isEncodable(externalName)) return undefined;
    return { records: [nameRecord("CNAME", externalName)], alias: externalName };
  }
  const endpoints = headless || labels.length === 1 ? slices().map(recordsOfSlice) : [];
  if (headless && endpoints.every((slice) => slice.endpoints.length === 0)) return undefined;
  const [first = "", second = ""] = labels;
  const addressesOf = (all: readonly EndpointRecord[]): ResourceRecord[] =>
    all.slice(0, mostRecords).map(({ address }) => address);
  if (labels.length === 0) {
    if (type === types.SRV) return headless ? srvOfEndpoints(name, endpoints, "", "") : srvOfService(name, records, "", "");
    return { records: headless ? endpoints.flatMap((slice) => addressesOf(slice.endpoints)) : records.addresses };
  }
  if (labels.length === 1) {
    if (first.startsWith("_"))
      return records.ports.some(({ name, protocol }) => name && `_${protocol}` === first) ? exists : undefined;
    const all = endpoints.flatMap((slice) => addressesOf(slice.named(first)));
    return all.length > 0 ? { records: all } : undefined;
  }
  if (labels.length !== 2 || first.length < 2 || !first.startsWith("_") || !second.startsWith("_")) return undefined;
  const [port, protocol] = [first.slice(1), second.slice(1)];
  return headless ? srvOfEndpoints(name, endpoints, port, protocol) : srvOfService(name, records, port, protocol);
}

/** @param port `""`: all ports */
function srvOfService(name: string, { ports, addresses }: ServiceRecords, port: string, protocol: string): Found | undefined {
  const wanted = ports.filter((one) => port === "" || (one.name === port && one.protocol === protocol));
  if (wanted.length === 0) return undefined;
  const weight = weightOf(wanted.length);
  const numbers = new Set(wanted.map((one) => one.port));
  const records = [...numbers].slice(0, mostRecords).map((number) => srvRecord(name, number, weight));
  const owner = encodeName(name);
  return { records, additionals: addresses.map((address) => ({ ...address, owner })) };
}

/** Of each of so many records. Source: CoreDNS' plugin backend */
const weightOf = (count: number): number => Math.max(1, Math.floor(100 / count));

type Slices = readonly ReturnType<typeof recordsOfSlice>[];

function srvOfEndpoints(name: string, slices: Slices, port: string, protocol: string): Found | undefined {
  const wanted: { endpoint: EndpointRecord; number: number; target: string }[] = [];
  for (const slice of slices) {
    for (const one of slice.ports) {
      if (port !== "" && (one.name !== port || one.protocol !== protocol)) continue;
      for (const endpoint of slice.endpoints.slice(0, mostRecords - wanted.length))
        wanted.push({ endpoint, number: one.port, target: `${endpoint.hostname}.${name}` });
    }
  }
  if (wanted.length === 0) return undefined;
  const weight = weightOf(wanted.length);
  // A dual-stack endpoint is in two slices and has one target.
  const unique = new Map(wanted.map((one) => [`${one.target} ${one.number}`, one]));
  const encodable = [...unique.values()].filter(({ target }) => isEncodable(target));
  return {
    records: encodable.map(({ target, number }) => srvRecord(target, number, weight)),
    additionals: wanted
      .filter(({ target }) => isEncodable(target))
      .map(({ endpoint, target }) => ({ ...endpoint.address, owner: encodeName(target) })),
  };
}

/** The address in `10-244-0-5` or `fd00--5`. */
function addressOfLabel(label: string): string | undefined {
  const v4 = label.replaceAll("-", ".");
  if (isIPv4(v4)) return v4;
  const v6 = label.replaceAll("-", ":");
  return isIPv6(v6) ? v6 : undefined;
}

const v4Suffix = ".in-addr.arpa";
const v6Suffix = ".ip6.arpa";

/** @returns as `addressKey` */
function reverseKey(name: string): string | undefined {
  if (name.endsWith(v4Suffix)) {
    const ip = name.slice(0, -v4Suffix.length).split(".").reverse().join(".");
    return isIPv4(ip) ? addressKey(ip) : undefined;
  }
  if (!name.endsWith(v6Suffix)) return undefined;
  const nibbles = name.slice(0, -v6Suffix.length).split(".").reverse();
  return nibbles.length === 32 && nibbles.every((nibble) => /^[0-9a-f]$/.test(nibble)) ? nibbles.join("") : undefined;
}
