import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { invalidValue, required } from "@coxswain/apimachinery/errors/field-error";
import type { Event } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { immutableField, isQualifiedName } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";

/**
 * Core v1 events, as old recorders write them: only names and namespaces are checked.
 * Source: pkg/registry/core/event/strategy.go, pkg/apis/core/validation/events.go legacyValidateEvent
 */
export const eventStrategy: Strategy<Event> = {
  namespaceScoped: true,
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: true,
  defaultGarbageCollection: "Unsupported",
  validate: (next) => validateEvent(next),
  validateUpdate: (next) => validateEvent(next),
};

/** Shape of what old recorders write; one that fills `eventTime` speaks the new way, whatever the version. */
export function validateLegacyEvent(event: Event): FieldError[] {
  const errors: FieldError[] = [];
  const involved = event.involvedObject ?? {};
  const namespace = event.metadata.namespace ?? "";
  if (!involved.namespace) {
    // Events of cluster-scoped objects go to `default`.
    if (namespace !== "default" && namespace !== "") {
      errors.push(invalidValue("involvedObject.namespace", "", "does not match event.namespace"));
    }
  } else if (involved.namespace !== namespace) {
    errors.push(invalidValue("involvedObject.namespace", involved.namespace, "does not match event.namespace"));
  }
  return errors;
}

export function validateEvent(event: Event): FieldError[] {
  const errors = validateLegacyEvent(event);
  return event.eventTime ? [...errors, ...validateReport(event, "reportingComponent")] : errors;
}

/** What events.k8s.io asks of its recorders. Source: pkg/apis/core/validation/events.go ValidateEventCreate */
export function validateNewEvent(event: Event): FieldError[] {
  const errors = validateLegacyEvent(event);
  if (!event.eventTime) errors.push(required("eventTime"));
  errors.push(...validateReport(event, "reportingController"));
  if (event.type !== "Normal" && event.type !== "Warning")
    errors.push(invalidValue("type", "", "has invalid value: " + (event.type ?? "")));
  return errors;
}

function validateReport(event: Event, component: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!event.reportingComponent) errors.push(required(component));
  else
    for (const message of isQualifiedName(event.reportingComponent))
      errors.push(invalidValue(component, event.reportingComponent, message));
  errors.push(...lengthWithin(event.reportingInstance, 128, "reportingInstance", true));
  errors.push(...lengthWithin(event.action, 128, "action", true));
  errors.push(...lengthWithin(event.reason, 128, "reason", true));
  errors.push(...lengthWithin(event.message, 1024, "message", false));
  return errors;
}

function lengthWithin(text: string | undefined, most: number, field: string, needed: boolean): FieldError[] {
  if (!text) return needed ? [required(field)] : [];
  return text.length > most ? [invalidValue(field, text, `can have at most ${most} characters`)] : [];
}

const immutable = [
  "involvedObject",
  "reason",
  "message",
  "source",
  "firstTimestamp",
  "eventTime",
  "related",
  "action",
  "reportingComponent",
  "reportingInstance",
  "type",
] as const;

export function validateNewEventUpdate(next: Event, current: Event): FieldError[] {
  const errors = validateLegacyEvent(next);
  for (const field of immutable) errors.push(...immutableField(next[field], current[field], field));
  return errors;
}
