import {
  child,
  type FieldError,
  forbiddenField,
  index,
  invalidValue,
  notSupported,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { goStrings } from "@coxswain/apimachinery/objects/errors/go-syntax";
import { cidrContains, parseCidr } from "@coxswain/apimachinery/objects/meta/ip";
import type {
  IPBlock,
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
} from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { checkLabelSelector, checkPort, portNameProblems } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { strategyOf } from "../../strategies.ts";

/** Source: pkg/registry/networking/networkpolicy/strategy.go, pkg/apis/networking/validation/validation.go */
export const networkPolicyStrategy: Strategy<NetworkPolicy> = strategyOf<NetworkPolicy>({
  namespaced: true,
  generation: true,
  validate: (next) => validateNetworkPolicy(next),
});

function validateNetworkPolicy(policy: NetworkPolicy): FieldError[] {
  const spec = policy.spec ?? { podSelector: {} };
  const errors = checkLabelSelector(spec.podSelector, "spec.podSelector");
  for (const [i, rule] of (spec.ingress ?? []).entries()) {
    const at = index("spec.ingress", i);
    for (const [j, port] of (rule.ports ?? []).entries()) errors.push(...validatePort(port, index(child(at, "ports"), j)));
    for (const [j, peer] of (rule.from ?? []).entries()) errors.push(...validatePeer(peer, index(child(at, "from"), j)));
  }
  for (const [i, rule] of (spec.egress ?? []).entries()) {
    const at = index("spec.egress", i);
    for (const [j, port] of (rule.ports ?? []).entries()) errors.push(...validatePort(port, index(child(at, "ports"), j)));
    for (const [j, peer] of (rule.to ?? []).entries()) errors.push(...validatePeer(peer, index(child(at, "to"), j)));
  }
  const types: readonly string[] = spec.policyTypes ?? [];
  if (types.length > 2) {
    const shown = goStrings("networking.PolicyType", types);
    return [...errors, invalidValue("spec.policyTypes", shown, "may not specify more than two policyTypes")];
  }
  for (const [i, type] of types.entries()) {
    if (type !== "Ingress" && type !== "Egress")
      errors.push(notSupported(index("spec.policyTypes", i), type, ["Ingress", "Egress"]));
  }
  return errors;
}

function validatePort(port: NetworkPolicyPort, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const protocol: string | undefined = port.protocol;
  if (protocol !== undefined && !["TCP", "UDP", "SCTP"].includes(protocol)) {
    errors.push(notSupported(child(path, "protocol"), protocol, ["TCP", "UDP", "SCTP"]));
  }
  if (typeof port.port === "number") {
    errors.push(...checkPort(port.port, child(path, "port")));
    if (port.endPort !== undefined) {
      if (port.endPort < port.port)
        errors.push(invalidValue(child(path, "endPort"), port.port, "must be greater than or equal to `port`"));
      errors.push(...checkPort(port.endPort, child(path, "endPort")));
    }
  } else {
    if (port.endPort !== undefined) {
      errors.push(
        invalidValue(
          child(path, "endPort"),
          port.endPort,
          port.port === undefined
            ? "may not be specified when `port` is not specified"
            : "may not be specified when `port` is non-numeric",
        ),
      );
    }
    if (typeof port.port === "string") {
      for (const message of portNameProblems(port.port)) errors.push(invalidValue(child(path, "port"), port.port, message));
    }
  }
  return errors;
}

function validatePeer(peer: NetworkPolicyPeer, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (peer.podSelector) errors.push(...checkLabelSelector(peer.podSelector, child(path, "podSelector")));
  if (peer.namespaceSelector) errors.push(...checkLabelSelector(peer.namespaceSelector, child(path, "namespaceSelector")));
  if (peer.ipBlock) errors.push(...validateIpBlock(peer.ipBlock, child(path, "ipBlock")));
  const selectors = (peer.podSelector ? 1 : 0) + (peer.namespaceSelector ? 1 : 0);
  if (selectors === 0 && !peer.ipBlock) errors.push(required(path, "must specify a peer"));
  else if (selectors > 0 && peer.ipBlock) errors.push(forbiddenField(path, "may not specify both ipBlock and another peer"));
  return errors;
}

function validateIpBlock(block: IPBlock, path: string): FieldError[] {
  if (!block.cidr) return [required(child(path, "cidr"))];
  const range = parseCidr(block.cidr);
  if (!range) return [invalidValue(child(path, "cidr"), block.cidr, "not a valid CIDR")];
  const errors: FieldError[] = [];
  for (const [i, except] of (block.except ?? []).entries()) {
    const at = index(child(path, "except"), i);
    const inner = parseCidr(except);
    if (!inner) return [...errors, invalidValue(at, except, "not a valid CIDR")];
    if (!cidrContains(block.cidr, inner.ip) || inner.bits <= range.bits)
      errors.push(invalidValue(at, except, "must be a strict subset of `cidr`"));
  }
  return errors;
}
