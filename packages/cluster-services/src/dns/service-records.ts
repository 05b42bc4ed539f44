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

export interface EndpointRecord {
  /** The endpoint's host name, or its address with dashes in place of dots and colons. */
  readonly hostname: string;
  readonly address: ResourceRecord;
}

interface SliceRecords {
  /** Ready endpoints. */
  readonly endpoints: readonly EndpointRecord[];
  readonly byHostname: ReadonlyMap<string, readonly EndpointRecord[]>;
  /** By `addressKey`. */
  readonly byAddress: ReadonlyMap<string, EndpointRecord>;
  readonly ports: readonly ServicePortName[];
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
  let records = sliceCache.get(slice);
  if (records === undefined) {
    const endpoints: EndpointRecord[] = [];
    const byAddress = new Map<string, EndpointRecord>();
    for (const { addresses, conditions, hostname } of slice.endpoints ?? []) {
      if (conditions?.ready === false) continue;
      for (const ip of addresses.filter(isAddress)) {
        const endpoint = { hostname: hostname || dashed(ip), address: addressRecord(ip) };
        endpoints.push(endpoint);
        byAddress.set(addressKey(ip), endpoint);
      }
    }
    const ports = (slice.ports ?? []).flatMap(({ port, ...named }) => (port ? [portName({ ...named, port })] : []));
    records = { endpoints, byHostname: Map.groupBy(endpoints, ({ hostname }) => hostname), byAddress, ports };
    sliceCache.set(slice, records);
  }
  return records;
}

/** Keys of all endpoints of a slice, ready or not, for an index. */
export function addressKeysOf(slice: EndpointSlice): string[] {
  return (slice.endpoints ?? []).flatMap(({ addresses }) => addresses.filter(isAddress).map(addressKey));
}

/** An address as PTR questions name it: its bytes in hexadecimal. */
export function addressKey(ip: string): string {
  return addressRecord(ip).data.toString("hex", 2);
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
