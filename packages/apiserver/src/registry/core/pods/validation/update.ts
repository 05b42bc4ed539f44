import {
  addErrors,
  child,
  duplicate,
  type FieldError,
  forbiddenField,
  index,
  internalField,
  invalidValue,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqual, semanticEqualInSteps } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { differencesText } from "@coxswain/apimachinery/objects/meta/differences";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { Container, ContainerStatus, Pod, PodIP, Toleration } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { dns1123Subdomain, ipProblems, isIpv4Text, qualifiedName } from "../../../field-checks.ts";
import { eachInSteps, emptyStruct, need, saying, wholeObject } from "../../../rules.ts";
import { untimedKey, validateTolerations } from "./affinity.ts";
import { isMirrorPod, validatePodAnnotationsUpdate } from "./annotations.ts";
import { withoutSpaces } from "./containers.ts";
import type { PodValidationOptions } from "./options.ts";
import { validatePodCommon } from "./pod.ts";

const updatableText =
  "pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to existing tolerations) or `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/**
 * Validates an update of a pod: only images, a shorter activeDeadlineSeconds and additional tolerations may change.
 * Source: pkg/apis/core/validation ValidatePodUpdate
 */
export function* validatePodUpdate(next: Pod, current: Pod, options: PodValidationOptions): Steps<FieldError[]> {
  const path = "metadata.annotations";
  const annotations = yield* validatePodAnnotationsUpdate(next, current, path, options);
  const errors = yield* validatePodCommon(next, options);
  addErrors(errors, annotations);
  yield;
  addErrors(errors, yield* validateSpecUpdate(next, current));
  return errors;
}

function* validateSpecUpdate(next: Pod, current: Pod): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  for (const field of ["containers", "initContainers"] as const) {
    const path = child("spec", field);
    if ((next.spec[field] ?? []).length !== (current.spec[field] ?? []).length)
      return [...errors, forbiddenField(path, "pod updates may not add or remove containers")];
    addErrors(errors, yield* eachInSteps(next.spec[field], path, ({ image }, at) => need(image, child(at, "image"))));
    addErrors(errors, yield* withoutSpaces(next.spec[field], path));
  }
  const deadline = deadlineShrinks(next.spec.activeDeadlineSeconds, current.spec.activeDeadlineSeconds);
  errors.push(...deadline);
  if (deadline.length > 0 && typeof next.spec.activeDeadlineSeconds === "number") return errors;
  addErrors(errors, yield* onlyAdded(next.spec.tolerations ?? [], current.spec.tolerations ?? []));
  yield;
  const munged = { ...next.spec };
  for (const field of ["containers", "initContainers"] as const) {
    const list = munged[field]?.map((container, i) => withImageOf(container, current.spec[field]?.[i]));
    if (list !== undefined) munged[field] = list;
  }
  restore(munged, current.spec, "activeDeadlineSeconds");
  restore(munged, current.spec, "tolerations");
  if ((current.spec.terminationGracePeriodSeconds ?? 0) < 0 && next.spec.terminationGracePeriodSeconds === 1) {
    restore(munged, current.spec, "terminationGracePeriodSeconds");
  }
  yield;
  if (!(yield* semanticEqualInSteps(munged, current.spec))) {
    yield;
    errors.push(forbiddenField("spec", `${updatableText}\n${differencesText(current.spec, munged)}`));
  }
  return errors;
}

function withImageOf(container: Container, from: Container | undefined): Container {
  const copy = { ...container };
  restore(copy, from ?? emptyStruct(), "image");
  return copy;
}

function restore<T extends object, K extends keyof T>(next: T, current: T, field: K): void {
  if (current[field] === undefined) delete next[field];
  else next[field] = current[field];
}

function deadlineShrinks(next: number | undefined, current: number | undefined): FieldError[] {
  const path = "spec.activeDeadlineSeconds";
  if (next === undefined || next === null) {
    return current === undefined || current === null
      ? []
      : [invalidValue(path, next ?? null, "must not update from a positive integer to nil value")];
  }
  if (next < 0 || next > 2 ** 31 - 1) return [invalidValue(path, next, "must be between 0 and 2147483647, inclusive")];
  if (current !== undefined && current !== null && current < next) {
    return [invalidValue(path, next, "must be less than or equal to previous value")];
  }
  return [];
}

/** Tolerations may be added; existing ones may only change tolerationSeconds. */
function* onlyAdded(next: readonly Toleration[], current: readonly Toleration[]): Steps<FieldError[]> {
  const given = new Set(next.map(untimedKey));
  return current.every((old) => given.has(untimedKey(old)))
    ? yield* validateTolerations(next, "spec.tolerations")
    : [forbiddenField("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")];
}

const ownConditions = ["PodScheduled", "Ready", "Initialized"];

/**
 * An update of `/status`: terminated containers restart only if the policy allows it, and `spec.nodeName` is unchanged.
 * Source: pkg/apis/core/validation ValidatePodStatusUpdate
 */
export function* validatePodStatusUpdate(next: Pod, current: Pod, options: PodValidationOptions): Steps<FieldError[]> {
  const errors = yield* validatePodAnnotationsUpdate(next, current, "metadata.annotations", options);
  const [status, old] = [next.status ?? {}, current.status ?? {}];
  // The path `metadata.conditions` is upstream's.
  const conditions = yield* eachInSteps(status.conditions, "metadata.conditions", ({ type = "" }, at) =>
    ownConditions.includes(type) ? [] : qualifiedName(type, child(at, "Type")),
  );
  addErrors(errors, conditions);
  if (next.spec.nodeName !== current.spec.nodeName) errors.push(forbiddenField("status.nodeName", "may not be changed directly"));
  if (status.nominatedNodeName && status.nominatedNodeName !== old.nominatedNodeName)
    errors.push(...dns1123Subdomain(status.nominatedNodeName, "status.nominatedNodeName"));
  const policy = current.spec.restartPolicy ?? "Always";
  for (const [field, restarts] of [
    ["containerStatuses", policy],
    ["initContainerStatuses", policy],
    ["ephemeralContainerStatuses", "Never"],
  ] as const) {
    yield;
    addErrors(errors, noRestart(status[field], old[field], child("status", field), restarts));
  }
  addErrors(errors, yield* validatePodIps(status.podIPs ?? [], "status.podIPs"));
  return errors;
}

/** Addresses that an error text shows. */
const mostShown = 1000;

/** At most one address per IP family. Source: pkg/apis/core/validation validatePodIPs */
function* validatePodIps(podIps: readonly PodIP[], path: string): Steps<FieldError[]> {
  const texts = podIps.map(({ ip = "" }) => ip);
  const errors = yield* eachInSteps(texts, path, (ip, at) => saying(ipProblems(ip), ip, at));
  if (texts.length < 2) return errors;
  const bad = texts.find((ip) => ipProblems(ip).length > 0);
  if (bad !== undefined) {
    errors.push(internalField(path, `failed to check for dual stack with error:invalid IP address: ${bad}`));
  }
  yield;
  const families = new Set(texts.map(isIpv4Text));
  yield;
  if (bad !== undefined || families.size < 2 || texts.length > 2) {
    const list = goStruct("[]core/v1.PodIP", podIps.slice(0, mostShown));
    errors.push(invalidValue(path, list, "may specify no more than one IP for each IP family"));
  }
  const seen = new Set<string>();
  const once = (ip: string, at: string): FieldError[] =>
    seen.size < seen.add(ip).size ? [] : [duplicate(at, goStruct("core/v1.PodIP", { ip }))];
  addErrors(errors, yield* eachInSteps(texts, path, once));
  return errors;
}

/** Terminated containers must not leave that state unless the restart policy allows a restart. */
function noRestart(
  next: readonly ContainerStatus[] | undefined,
  current: readonly ContainerStatus[] | undefined,
  path: string,
  restartPolicy: string,
): FieldError[] {
  if (restartPolicy === "Always") return [];
  const errors: FieldError[] = [];
  const byName = new Map((next ?? []).toReversed().map((status) => [status.name, status])); // the first of a name counts
  for (const [i, old] of (current ?? []).entries()) {
    const terminated = old.state?.terminated;
    if (!terminated) continue;
    if ((terminated.exitCode ?? 0) !== 0 && restartPolicy === "OnFailure") continue;
    const now = byName.get(old.name);
    if (now && !now.state?.terminated) {
      errors.push(forbiddenField(child(index(path, i), "state"), "may not be transitioned to non-terminated state"));
    }
  }
  return errors;
}

/**
 * An update of `/ephemeralcontainers`: may add containers, and neither change nor remove existing ones.
 * Source: pkg/apis/core/validation ValidatePodEphemeralContainersUpdate; pkg/registry/core/pod/strategy.go
 */
export function* validateEphemeralContainersUpdate(next: Pod, current: Pod, options: PodValidationOptions): Steps<FieldError[]> {
  if (isMirrorPod(current)) return [forbiddenField(wholeObject, "static pods do not support ephemeral containers")];
  const path = "spec.ephemeralContainers";
  const errors = yield* validatePodCommon(next, options);
  addErrors(errors, yield* validatePodAnnotationsUpdate(next, current, "metadata.annotations", options));
  const byName = new Map(next.spec.ephemeralContainers?.map((container) => [container.name, container])); // the last of a name counts
  for (const old of current.spec.ephemeralContainers ?? []) {
    yield;
    const kept = byName.get(old.name);
    const name = goQuote(old.name ?? "");
    if (!kept) errors.push(forbiddenField(path, `existing ephemeral containers ${name} may not be removed\n`));
    else if (!semanticEqual(kept, old)) {
      const text = `existing ephemeral containers ${name} may not be changed\n${differencesText(old, kept)}`;
      errors.push(forbiddenField(path, text));
    }
  }
  return errors;
}
