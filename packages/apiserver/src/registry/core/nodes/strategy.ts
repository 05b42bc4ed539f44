import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { duplicate, forbiddenField, invalidValue, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { Node, Taint } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { isLabelValue, parseCidr, qualifiedName } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { keep } from "../../strategies.ts";
import { checkTaintEffect } from "../pods/validation/affinity.ts";
import { checkQuantity, checkResourceName } from "../pods/validation/resources.ts";

/** Source: pkg/registry/core/node/strategy.go, pkg/apis/core/validation ValidateNode */
export const nodeStrategy: Strategy<Node> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  resetFields: ["status"],
  prepareForCreate(next, ctx) {
    dropConfigSource(next, undefined, ctx.featureEnabled);
  },
  prepareForUpdate(next, current, ctx) {
    keep(next, current, "status");
    dropConfigSource(next, current, ctx.featureEnabled);
  },
  validate: (next) => validateNode(next),
  validateUpdate: (next, current) => validateNodeUpdate(next, current),
};

export const nodeStatusStrategy: Strategy<Node> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  resetFields: ["spec"],
  prepareForUpdate: (next, current) => keep(next, current, "spec"),
  validateUpdate: (next, current) => validateNodeUpdate(next, current),
};

function dropConfigSource(next: Node, current: Node | undefined, featureEnabled: (gate: string) => boolean): void {
  if (!featureEnabled("DynamicKubeletConfig") && current?.spec?.configSource === undefined) delete next.spec?.configSource;
}

function validateNode(node: Node): FieldError[] {
  const errors: FieldError[] = [];
  errors.push(...validateTaints(node.spec?.taints ?? [], "spec.taints"));
  errors.push(...validateCapacity(node));
  const cidrs = node.spec?.podCIDRs ?? [];
  for (const [i, cidr] of cidrs.entries()) {
    if (!parseCidr(cidr))
      errors.push(invalidValue(index("spec.podCIDRs", i), cidr, "must be a valid CIDR block, (e.g. 10.0.0.0/8)"));
  }
  if (cidrs.length > 1) {
    const families = new Set(cidrs.map((cidr) => parseCidr(cidr)?.family));
    if (cidrs.length > 2 || families.size !== cidrs.length) {
      errors.push(invalidValue("spec.podCIDRs", cidrs, "may specify no more than one CIDR for each IP family"));
    }
  }
  return errors;
}

function validateCapacity(node: Node): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ["capacity", "allocatable"] as const) {
    for (const [name, value] of Object.entries(node.status?.[field] ?? {})) {
      const at = `status.${field}[${name}]`;
      errors.push(...checkResourceName(name, at), ...checkQuantity(name, value, at));
    }
  }
  return errors;
}

function validateTaints(taints: readonly Taint[], path: string): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const [i, taint] of taints.entries()) {
    const at = index(path, i);
    errors.push(...qualifiedName(taint.key ?? "", child(at, "key")));
    const messages = isLabelValue(taint.value ?? "");
    if (messages.length > 0) errors.push(invalidValue(child(at, "value"), taint.value ?? "", messages.join(";")));
    errors.push(...checkTaintEffect(taint.effect ?? "", child(at, "effect")));
    const key = `${taint.key}:${taint.effect}`;
    if (seen.has(key)) {
      const clash = duplicate(at, `{Key:${taint.key} Value:${taint.value ?? ""} Effect:${taint.effect}}`);
      errors.push({ ...clash, detail: "taints must be unique by key and effect pair" });
    }
    seen.add(key);
  }
  return errors;
}

function validateNodeUpdate(next: Node, current: Node): FieldError[] {
  const errors = validateNode(next);
  const addresses = new Set<string>();
  for (const [i, address] of (next.status?.addresses ?? []).entries()) {
    const key = `${address.type}/${address.address}`;
    if (addresses.has(key)) errors.push(duplicate(index("status.addresses", i), address));
    addresses.add(key);
  }
  const [nextCidrs, oldCidrs] = [next.spec?.podCIDRs ?? [], current.spec?.podCIDRs ?? []];
  if (oldCidrs.length > 0 && !semanticEqual(nextCidrs, oldCidrs)) {
    errors.push(forbiddenField("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'));
  }
  if (current.spec?.providerID && next.spec?.providerID !== current.spec.providerID) {
    errors.push(forbiddenField("spec.providerID", 'node updates may not change providerID except from "" to valid'));
  }
  if (next.metadata.name === "") errors.push(required("metadata.name"));
  return errors;
}
