import { DecodeFailure, decodeValue } from "@coxswain/apimachinery/objects/codec/json-decode";
import { parseJsonText } from "@coxswain/apimachinery/objects/codec/json-parse";
import {
  addErrors,
  child,
  duplicate,
  type FieldError,
  forbiddenField,
  internalField,
  invalidValue,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { parseCidr } from "@coxswain/apimachinery/objects/meta/ip";
import { jsonWord } from "@coxswain/apimachinery/objects/meta/json-value";
import type { TypeDescriptor } from "@coxswain/apimachinery/objects/schema/descriptor";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { AvoidPods, Node, NodeAddress, NodeSpec, Taint } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { labelValueProblems, qualifiedName } from "../../field-checks.ts";
import { each, eachInSteps, eachKeyInSteps, wholeObject } from "../../rules.ts";
import { checkTaintEffect } from "../pods/validation/affinity.ts";
import { checkQuantity } from "../pods/validation/resources.ts";
import { validateConfigSource, validateConfigStatus } from "./config-source.ts";

const taintsKey = "scheduler.alpha.kubernetes.io/taints";
const avoidPodsKey = "scheduler.alpha.kubernetes.io/preferAvoidPods";
/** Error path of taints, as upstream. */
const taintsPath = "metadata.taints";

/** Source: pkg/apis/core/validation ValidateNode */
export function* validateNode(node: Node): Steps<FieldError[]> {
  return [
    ...validateAnnotations(node, "metadata.annotations"),
    ...(yield* validateTaints(node.spec?.taints ?? [], taintsPath)),
    ...(yield* validateAmounts(node)),
    ...(yield* validatePodCidrs(node.spec?.podCIDRs ?? [], "spec.podCIDRs")),
  ];
}

function validateAnnotations(node: Node, path: string): FieldError[] {
  const annotations = node.metadata.annotations ?? {};
  return [
    ...parsed(annotations, taintsKey, path, goTaints, (taints) => atOnce(validateTaints(taints, child(path, taintsKey)))),
    ...parsed(annotations, avoidPodsKey, child(path, "AvoidPods"), goAvoidPods, (avoid) =>
      each(avoid.preferAvoidPods, child(path, avoidPodsKey), ({ podSignature }, at) => {
        const controller = podSignature?.podController;
        if (!controller) return [required(child(at, "PodSignature"))];
        const controllerPath = child(at, "PodSignature", "PodController", "Controller");
        return controller.controller ? [] : [invalidValue(controllerPath, false, "must point to a controller")];
      }),
    ),
  ];
}

const typeOf = (name: string): TypeDescriptor => scheme.type(`io.k8s.api.core.v1.${name}`)!;

function goTaints(value: unknown): Taint[] {
  if (value !== null && !Array.isArray(value)) throw new DecodeFailure(jsonWord(value), "[]core.Taint");
  // Cast: the decoder of the type has checked it.
  return (value ?? []).map((taint) => decodeValue(taint ?? {}, typeOf("Taint")) as unknown as Taint);
}

function goAvoidPods(value: unknown): AvoidPods {
  return decodeValue(value ?? {}, typeOf("AvoidPods"));
}

/** Parses an annotation that contains JSON. @param decode throws an error with Go's text for a value of another type */
function parsed<T>(
  annotations: Readonly<Record<string, string>>,
  key: string,
  faultPath: string,
  decode: (value: unknown) => T,
  check: (value: T) => FieldError[],
): FieldError[] {
  const text = Object.hasOwn(annotations, key) ? annotations[key] : "";
  if (!text) return [];
  try {
    return check(decode(parseJsonText(text)));
  } catch (err) {
    return [invalidValue(faultPath, key, messageOf(err))];
  }
}

function* validateTaints(taints: readonly Taint[], path: string): Steps<FieldError[]> {
  const seen = new Set<string>();
  return yield* eachInSteps(taints, path, (taint, at) => {
    const { key = "", value = "", effect = "" }: { key?: string; value?: string; effect?: string } = taint;
    const errors = qualifiedName(key, child(at, "key"));
    const faults = labelValueProblems(value);
    if (faults.length > 0) errors.push(invalidValue(child(at, "value"), value, faults.join(";")));
    errors.push(...checkTaintEffect(effect, child(at, "effect")));
    const pair = `${effect}/${key}`;
    if (seen.has(pair)) {
      errors.push({ ...duplicate(at, goStruct("core/v1.Taint", taint)), detail: "taints must be unique by key and effect pair" });
    }
    seen.add(pair);
    return errors;
  });
}

function* validateAmounts(node: Node): Steps<FieldError[]> {
  const { capacity, allocatable } = node.status ?? {};
  const check = (field: string) => (name: string, value: string) => checkQuantity(name, value, child("status", field, name));
  return [
    ...(yield* eachKeyInSteps(capacity, "status.capacity", check("capacity"))),
    ...(yield* eachKeyInSteps(allocatable, "status.allocatable", check("allocatable"))),
  ];
}

/** At most one CIDR per IP family. */
function* validatePodCidrs(cidrs: readonly string[], path: string): Steps<FieldError[]> {
  const families = new Set<number | undefined>();
  let bad: string | undefined;
  const errors = yield* eachInSteps(cidrs, path, (cidr, at) => {
    const family = parseCidr(cidr)?.family;
    families.add(family);
    if (family !== undefined) return [];
    bad ??= cidr;
    return [invalidValue(at, cidrs, "must be valid CIDR")];
  });
  if (cidrs.length < 2) return errors;
  if (bad !== undefined) {
    const cause = `failed to parse cidr value:${goQuote(bad)} with error:invalid CIDR address: ${bad}`;
    errors.push(internalField(path, `invalid PodCIDRs. failed to check with dual stack with error:${cause}`));
  }
  if (bad !== undefined || families.size < 2 || cidrs.length > 2)
    errors.push(invalidValue(path, cidrs, "may specify no more than one CIDR for each IP family"));
  yield;
  const known = new Set<string>();
  const repeated = yield* eachInSteps(cidrs, path, (cidr, at) => {
    if (known.has(cidr)) return [duplicate(at, cidr)];
    known.add(cidr);
    return [];
  });
  addErrors(errors, repeated);
  return errors;
}

const changeableText =
  "node updates may only change labels, taints, or capacity (or configSource, if the DynamicKubeletConfig feature gate is enabled)";

/**
 * The spec is immutable, except for configSource, taints, unschedulable, and podCIDRs and providerID while they are unset.
 * Source: pkg/apis/core/validation ValidateNodeUpdate
 */
export function* validateNodeUpdate(next: Node, current: Node): Steps<FieldError[]> {
  const [spec, old] = [next.spec ?? {}, current.spec ?? {}];
  const errors = [
    ...validateAnnotations(next, "metadata.annotations"),
    ...(yield* validateAmounts(next)),
    ...(yield* duplicateAddresses(next.status?.addresses ?? [])),
  ];
  const [cidrs, oldCidrs] = [spec.podCIDRs ?? [], old.podCIDRs ?? []];
  if (oldCidrs.length > 0 && !semanticEqual(cidrs, oldCidrs))
    errors.push(forbiddenField("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'));
  if (old.providerID && spec.providerID !== old.providerID)
    errors.push(forbiddenField("spec.providerID", 'node updates may not change providerID except from "" to valid'));
  if (spec.configSource) errors.push(...validateConfigSource(spec.configSource, "spec.configSource"));
  if (next.status?.config) errors.push(...validateConfigStatus(next.status.config, "status.config"));
  addErrors(errors, yield* validateTaints(spec.taints ?? [], taintsPath));
  yield;
  if (!semanticEqual(fixedPart(spec, old), fixedPart(old, old))) errors.push(forbiddenField(wholeObject, changeableText));
  return errors;
}

function* duplicateAddresses(addresses: readonly NodeAddress[]): Steps<FieldError[]> {
  const seen = new Set<string>();
  return yield* eachInSteps(addresses, "status.addresses", ({ type, address }, at) => {
    const key = JSON.stringify([type, address]);
    if (seen.has(key)) return [duplicate(at, goStruct("core/v1.NodeAddress", { type, address }))];
    seen.add(key);
    return [];
  });
}

/** The immutable part of the spec. Fields that may be set once are left out while they are unset in the stored object. */
function fixedPart(spec: NodeSpec, old: NodeSpec): Partial<NodeSpec> {
  const { configSource: _source, unschedulable: _unschedulable, taints: _taints, ...rest } = spec;
  if ((old.podCIDRs ?? []).length === 0) {
    delete rest.podCIDRs;
    delete rest.podCIDR;
  }
  if (!old.providerID) delete rest.providerID;
  return rest;
}
