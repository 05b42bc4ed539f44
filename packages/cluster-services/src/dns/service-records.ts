/** The records of one Service, and of one EndpointSlice. Objects of an informer never change, so both are computed once for each. */
import { isIPv4, isIPv6 } from "node:net";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import { addressRecord } from "./encode-record.ts";
import type { ResourceRecord } from "./reply.ts";

interface ServicePortName {
  readonly name: string;
  /** Lower case. */
  readonly protocol: string;
  readonly port: number;
}

export interface ServiceRecords {
  readonly headless: boolean;
  /** Target of an ExternalName Service, lower case, without the last dot. */
  readonly externalName: string | undefined;
  /** A and AAAA records of the cluster IPs. */
  readonly addresses: readonly ResourceRecord[];
  readonly ports: readonly ServicePortName[];
}

/** An address of an endpoint. What questions ask for is made then: a slice may have 100,000 addresses. */
export class EndpointRecord {
  readonly #given: string | undefined;
  readonly #ip: string;
  #address: ResourceRecord | undefined;

  constructor(ip: string, hostname: string | undefined) {
    this.#ip = ip;
    this.#given = hostname;
  }

  /** The endpoint's host name, or its address with dashes in place of dots and colons. */
  get hostname(): string {
    return this.#given || dashed(this.#ip);
  }

  get address(): ResourceRecord {
    this.#address ??= addressRecord(this.#ip);
    return this.#address;
  }

  get key(): string {
    return addressKey(this.#ip);
  }
}

class SliceRecords {
  /** Ready endpoints. */
  readonly endpoints: readonly EndpointRecord[];
  readonly ports: readonly ServicePortName[];
  #byHostname: ReadonlyMap<string, readonly EndpointRecord[]> | undefined;
  #byAddress: ReadonlyMap<string, EndpointRecord> | undefined;

  constructor({ endpoints, ports }: EndpointSlice) {
    this.endpoints = (endpoints ?? []).flatMap(({ addresses, conditions, hostname }) =>
      conditions?.ready === false ? [] : addresses.filter(isAddress).map((ip) => new EndpointRecord(ip, hostname)),
    );
    this.ports = (ports ?? []).flatMap(({ port, ...named }) => (port ? [portName({ ...named, port })] : []));
  }

  named(hostname: string): readonly EndpointRecord[] {
    this.#byHostname ??= Map.groupBy(this.endpoints, (endpoint) => endpoint.hostname);
    return this.#byHostname.get(hostname) ?? [];
  }

  /** @param key as `addressKey` */
  at(key: string): EndpointRecord | undefined {
    this.#byAddress ??= new Map(this.endpoints.map((endpoint) => [endpoint.key, endpoint]));
    return this.#byAddress.get(key);
  }
}

/** Pure caches: objects from listers never change. */
const serviceCache = new WeakMap<Service, ServiceRecords>();
const sliceCache = new WeakMap<EndpointSlice, SliceRecords>();

export function recordsOfService(service: Service): ServiceRecords {
  let records = serviceCache.get(service);
  if (records === undefined) {
    const { spec = {} } = service;
    const isExternal = spec.type === "ExternalName";
    records = {
      headless: !isExternal && spec.clusterIP === "None",
      externalName: isExternal ? (spec.externalName ?? "").toLowerCase().replace(/\.$/, "") : undefined,
      addresses: isExternal ? [] : clusterIpsOf(service).map(addressRecord),
      ports: (spec.ports ?? []).map(portName),
    };
    serviceCache.set(service, records);
  }
  return records;
}

/** The assigned cluster IPs; none for headless Services. */
export function clusterIpsOf({ spec = {} }: Service): string[] {
  const all = spec.clusterIPs?.length ? spec.clusterIPs : [spec.clusterIP ?? ""];
  return all.filter(isAddress);
}

/** Ready endpoints only, also those that do not say whether they are; several addresses of one endpoint are separate records. */
export function recordsOfSlice(slice: EndpointSlice): SliceRecords {
  return sliceCache.getOrInsertComputed(slice, () => new SliceRecords(slice));
}

/** Keys of all endpoints of a slice, ready or not, for an index. */
export function addressKeysOf(slice: EndpointSlice): string[] {
  return (slice.endpoints ?? []).flatMap(({ addresses }) => addresses.filter(isAddress).map(addressKey));
}

/** An address as PTR questions name it: an IPv4 address as it is, of an IPv6 address its bytes in hexadecimal. */
export function addressKey(ip: string): string {
  return isIPv4(ip) ? ip : hexOf(ip);
}

const zeros = ["", "0", "00", "000", "0000"];

/** The 32 hexadecimal digits of an IPv6 address. `ipToBigInt` takes twice as long, and a slice may have tens of thousands of addresses. */
function hexOf(ip: string): string {
  const v4At = ip.includes(".") ? ip.lastIndexOf(":") + 1 : ip.length;
  const last = ip.slice(v4At).split(".").map(Number);
  const v4 = last.length === 4 ? [(last[0]! << 8) | last[1]!, (last[2]! << 8) | last[3]!].map((group) => group.toString(16)) : [];
  const text = v4.length === 0 ? ip : ip.slice(0, v4At) + v4.join(":");
  const gap = text.indexOf("::");
  const head = gap < 0 ? text : text.slice(0, gap);
  let [left, right] = ["", ""];
  for (const group of head.split(":")) if (group !== "") left += zeros[4 - group.length] + group;
  if (gap >= 0) for (const group of text.slice(gap + 2).split(":")) if (group !== "") right += zeros[4 - group.length] + group;
  return (left + right.padStart(32 - left.length, "0")).toLowerCase();
}

/** Slices may have names of hosts instead (the deprecated type FQDN). */
const isAddress = (text: string): boolean => isIPv4(text) || (isIPv6(text) && !text.includes("%"));

function portName({ name = "", protocol = "TCP", port }: { name?: string; protocol?: string; port: number }): ServicePortName {
  return { name: name.toLowerCase(), protocol: protocol.toLowerCase(), port };
}

/** `10-244-0-5`, `fd00--5`; a host name may not begin or end with a dash, as that of `::1` would. */
function dashed(ip: string): string {
  const text = ip.toLowerCase().replaceAll(/[.:]/g, "-");
  return `${text.startsWith("-") ? "0" : ""}${text}${text.endsWith("-") ? "0" : ""}`;
}
