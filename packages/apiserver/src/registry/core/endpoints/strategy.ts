import { child, type FieldError, index, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import type {
  EndpointAddress,
  EndpointPort,
  EndpointSubset,
  Endpoints,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import {
  checkNonSpecialIp,
  dns1123Label,
  dns1123Subdomain,
  ipProblems,
  oneOf,
  portProblems,
  qualifiedName,
} from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";

/** Source: pkg/registry/core/endpoint/strategy.go, pkg/apis/core/validation ValidateEndpoints */
export const endpointsStrategy: Strategy<Endpoints> = {
  namespaceScoped: true,
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: true,
  validateInSteps: (next) => validateEndpoints(next),
};

function* validateEndpoints(endpoints: Endpoints): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  for (const [i, subset] of (endpoints.subsets ?? []).entries()) {
    yield* validateSubset(subset, index("subsets", i), errors);
  }
  return errors;
}

/** Addresses checked between two yields: less than a millisecond. */
const checkedAtOnce = 100;

function* validateSubset(subset: EndpointSubset, path: string, errors: FieldError[]): Steps<void> {
  const { addresses = [], notReadyAddresses = [], ports = [] } = subset;
  if (!addresses?.length && !notReadyAddresses?.length)
    errors.push(required(path, "must specify `addresses` or `notReadyAddresses`"));
  for (const [name, list] of Object.entries({ addresses, notReadyAddresses })) {
    for (const [i, address] of (list ?? []).entries()) {
      errors.push(...validateAddress(address, index(child(path, name), i)));
      if (i % checkedAtOnce === 0) yield;
    }
  }
  for (const [i, port] of (ports ?? []).entries())
    errors.push(...validatePort(port, (ports ?? []).length > 1, index(child(path, "ports"), i)));
}

function validateAddress(address: EndpointAddress, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const message of ipProblems(address.ip ?? "")) errors.push(invalidValue(child(path, "ip"), address.ip ?? "", message));
  if (address.hostname) errors.push(...dns1123Label(address.hostname, child(path, "hostname")));
  if (address.nodeName !== undefined && address.nodeName !== null)
    errors.push(...dns1123Subdomain(address.nodeName, child(path, "nodeName")));
  return [...errors, ...checkNonSpecialIp(address.ip ?? "", child(path, "ip"))];
}

function validatePort(port: EndpointPort, requireName: boolean, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (requireName && !port.name) errors.push(required(child(path, "name"), ""));
  else if (port.name) errors.push(...dns1123Label(port.name, child(path, "name")));
  for (const message of portProblems(port.port ?? 0)) errors.push(invalidValue(child(path, "port"), port.port ?? 0, message));
  errors.push(...oneOf(port.protocol, ["TCP", "UDP", "SCTP"], child(path, "protocol")));
  if (port.appProtocol !== undefined) errors.push(...qualifiedName(port.appProtocol, child(path, "appProtocol")));
  return errors;
}
