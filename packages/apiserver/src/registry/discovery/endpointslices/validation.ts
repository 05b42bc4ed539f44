import {
  child,
  duplicate,
  type FieldError,
  index,
  invalidValue,
  notSupported,
  required,
  tooMany,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { parseIp } from "@coxswain/apimachinery/objects/meta/ip";
import type { EndpointSlice } from "@coxswain/apimachinery/objects/schema/kinds/discovery/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import {
  checkLabels,
  checkNonSpecialIp,
  dns1123Label,
  dns1123LabelProblems,
  dns1123Subdomain,
  dns1123SubdomainProblems,
  immutableField,
  isIpv4Text,
  labelValueProblems,
  qualifiedName,
} from "../../field-checks.ts";
import { each, saying } from "../../rules.ts";

const maxEndpoints = 1000;
const maxAddresses = 100;
const maxPorts = 20000;
const maxTopologyLabels = 16;
const maxZoneHints = 8;

/**
 * Yields between endpoints: a slice may have 100,000 addresses.
 * Source: pkg/apis/discovery/validation/validation.go
 */
export function* validateEndpointSlice(slice: EndpointSlice): Steps<FieldError[]> {
  const addressType: string = slice.addressType ?? "";
  const errors: FieldError[] = [];
  if (addressType === "") errors.push(required("addressType"));
  else if (!["IPv4", "IPv6", "FQDN"].includes(addressType))
    errors.push(notSupported("addressType", addressType, ["FQDN", "IPv4", "IPv6"]));
  return [...errors, ...(yield* validateEndpoints(slice, addressType)), ...validatePorts(slice)];
}

export function* validateEndpointSliceUpdate(next: EndpointSlice, current: EndpointSlice): Steps<FieldError[]> {
  return [...(yield* validateEndpointSlice(next)), ...immutableField(next.addressType, current.addressType, "addressType")];
}

function* validateEndpoints(slice: EndpointSlice, addressType: string): Steps<FieldError[]> {
  const endpoints = slice.endpoints ?? [];
  if (endpoints.length > maxEndpoints) return [tooMany("endpoints", endpoints.length, maxEndpoints)];
  const errors: FieldError[] = [];
  for (const [i, endpoint] of endpoints.entries()) {
    const at = index("endpoints", i);
    const addresses = endpoint.addresses ?? [];
    if (addresses.length === 0) errors.push(required(child(at, "addresses"), "must contain at least 1 address"));
    else if (addresses.length > maxAddresses) errors.push(tooMany(child(at, "addresses"), addresses.length, maxAddresses));
    for (const [j, address] of addresses.entries()) {
      const path = index(child(at, "addresses"), j);
      if (addressType === "IPv4") {
        if (!isIpv4Text(address)) errors.push(invalidValue(path, address, "must be a valid IPv4 address"));
        errors.push(...checkNonSpecialIp(address, path));
      } else if (addressType === "IPv6") {
        if (parseIp(address) === undefined || isIpv4Text(address))
          errors.push(invalidValue(path, address, "must be a valid IPv6 address"));
        errors.push(...checkNonSpecialIp(address, path));
      } else if (addressType === "FQDN") errors.push(...checkFullDomain(address, path));
    }
    if (endpoint.nodeName !== undefined) errors.push(...dns1123Subdomain(endpoint.nodeName, child(at, "nodeName")));
    const topology = endpoint.deprecatedTopology ?? {};
    if (Object.keys(topology).length > maxTopologyLabels) {
      errors.push(tooMany(child(at, "deprecatedTopology"), Object.keys(topology).length, maxTopologyLabels));
    }
    errors.push(...checkLabels(topology, child(at, "deprecatedTopology")));
    if (endpoint.hostname !== undefined) errors.push(...dns1123Label(endpoint.hostname, child(at, "hostname")));
    errors.push(...validateZones(endpoint.hints?.forZones ?? [], child(at, "hints", "forZones")));
    yield;
  }
  return errors;
}

/** `example.com` or `example.com.`. Source: k8s.io/apimachinery pkg/util/validation IsFullyQualifiedDomainName */
function checkFullDomain(address: string, path: string): FieldError[] {
  if (address === "") return [required(path)];
  const name = address.replace(/\.$/, "");
  const faults = dns1123SubdomainProblems(name);
  if (faults.length > 0) return [invalidValue(path, name, faults.join(","))];
  const labels = name.split(".");
  if (labels.length < 2) return [invalidValue(path, name, "should be a domain with at least two segments separated by dots")];
  return labels
    .filter((label) => dns1123LabelProblems(label).length > 0)
    .map((label) => invalidValue(path, label, dns1123LabelProblems(label).join(",")));
}

function validateZones(zones: readonly { name: string }[], path: string): FieldError[] {
  if (zones.length > maxZoneHints) return [tooMany(path, zones.length, maxZoneHints)];
  const names = new Set<string>();
  return each(zones, path, ({ name }, own) => {
    const at = child(own, "name");
    const errors = names.has(name) ? [duplicate(at, name)] : [];
    names.add(name);
    return [...errors, ...saying(labelValueProblems(name), name, at)];
  });
}

function validatePorts(slice: EndpointSlice): FieldError[] {
  const ports = slice.ports ?? [];
  if (ports.length > maxPorts) return [tooMany("ports", ports.length, maxPorts)];
  const errors: FieldError[] = [];
  const names = new Set<string>();
  for (const [i, port] of ports.entries()) {
    const at = index("ports", i);
    const name = port.name ?? "";
    if (name !== "") errors.push(...dns1123Label(name, child(at, "name")));
    if (names.has(name)) errors.push(duplicate(child(at, "name"), name));
    names.add(name);
    const protocol: string = port.protocol ?? "";
    if (protocol === "") errors.push(required(child(at, "protocol")));
    else if (!["TCP", "UDP", "SCTP"].includes(protocol))
      errors.push(notSupported(child(at, "protocol"), protocol, ["SCTP", "TCP", "UDP"]));
    if (port.appProtocol !== undefined) errors.push(...qualifiedName(port.appProtocol, child(at, "appProtocol")));
  }
  return errors;
}
