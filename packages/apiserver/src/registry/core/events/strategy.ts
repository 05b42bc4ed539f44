import { type FieldError, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import type { Event } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pathSegmentFaults } from "@coxswain/apimachinery/objects/validation/dns";
import { validateKubeFinalizer, validateObjectMeta } from "@coxswain/apimachinery/objects/validation/object-meta";
import { dns1123SubdomainProblems, qualifiedNameProblems } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { each } from "../../rules.ts";

/**
 * Events of core v1 and events.k8s.io/v1beta1, from legacy and new recorders.
 * Source: pkg/registry/core/event/strategy.go, pkg/apis/core/validation/events.go legacyValidateEvent
 */
export const eventStrategy: Strategy<Event> = {
  namespaceScoped: true,
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: true,
  defaultGarbageCollection: "Unsupported",
  validateName: pathSegmentFaults,
  metadataLast: true,
  anyFinalizer: true,
  validate: (next) => validateEvent(next),
  validateUpdate: (next) => validateEvent(next),
};

/** Events with `eventTime` are validated as new-style events, regardless of the version. */
export function validateEvent(event: Event): FieldError[] {
  const involved = event.involvedObject ?? {};
  const namespace = event.metadata.namespace ?? "";
  // Events of cluster-scoped objects are in namespace `default`, new-style ones also in `kube-system`.
  const elsewhere = event.eventTime ? ["default", "kube-system"] : ["", "default"];
  const fits = involved.namespace ? Boolean(event.eventTime) || involved.namespace === namespace : elsewhere.includes(namespace);
  const mismatch = invalidValue("involvedObject.namespace", involved.namespace ?? "", "does not match event.namespace");
  return [...(fits ? [] : [mismatch]), ...(event.eventTime ? validateReport(event) : [])];
}

/**
 * Additional checks on create in events.k8s.io/v1. Updates are not restricted: upstream 1.23 means to make all fields except
 * `series` immutable, but compares the new event with itself.
 * Source: pkg/apis/core/validation/events.go ValidateEventCreate, pkg/registry/core/event/strategy.go ValidateUpdate
 */
export function validateNewEvent(event: Event): FieldError[] {
  const metadata = validateObjectMeta(event.metadata, true, dns1123SubdomainProblems, "metadata");
  const finalizers = each(event.metadata.finalizers, "metadata.finalizers", validateKubeFinalizer);
  const errors = [...validateEvent(event), ...metadata, ...finalizers, ...validateSeries(event)];
  if (!event.eventTime) errors.push(required("eventTime"));
  if (event.type !== "Normal" && event.type !== "Warning")
    errors.push(invalidValue("type", "", `has invalid value: ${event.type ?? ""}`));
  const unset = (field: string, is: boolean): void => {
    if (!is) errors.push(invalidValue(field, "", "needs to be unset"));
  };
  unset("firstTimestamp", !event.firstTimestamp);
  unset("lastTimestamp", !event.lastTimestamp);
  unset("count", !event.count);
  unset("source", !event.source?.component && !event.source?.host);
  return errors;
}

function validateSeries({ series }: Event): FieldError[] {
  if (!series) return [];
  const errors: FieldError[] = [];
  if ((series.count ?? 0) < 2) errors.push(invalidValue("series.count", "", "should be at least 2"));
  if (!series.lastObservedTime) errors.push(required("series.lastObservedTime"));
  return errors;
}

function validateReport(event: Event): FieldError[] {
  const errors: FieldError[] = [];
  const component = event.reportingComponent ?? "";
  if (component === "") errors.push(required("reportingController"));
  for (const message of qualifiedNameProblems(component)) errors.push(invalidValue("reportingController", component, message));
  errors.push(...lengthWithin(event.reportingInstance, 128, "reportingInstance", true));
  errors.push(...lengthWithin(event.action, 128, "action", true));
  errors.push(...lengthWithin(event.reason, 128, "reason", true));
  errors.push(...lengthWithin(event.message, 1024, "message", false));
  return errors;
}

function lengthWithin(text: string | undefined, most: number, field: string, needed: boolean): FieldError[] {
  if (!text) return needed ? [required(field)] : [];
  return Buffer.byteLength(text) > most ? [invalidValue(field, "", `can have at most ${most} characters`)] : [];
}
