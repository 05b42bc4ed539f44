import type { Event } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/**
 * Fields for field selectors besides those of the metadata. Without source.component, `source` is reportingComponent.
 * Source: pkg/registry/core/event/strategy.go ToSelectableFields
 */
export function coreEventFields(event: Event): Record<string, string> {
  const involved = event.involvedObject ?? {};
  const source = event.source?.component || event.reportingComponent || "";
  return {
    "involvedObject.kind": involved.kind ?? "",
    "involvedObject.namespace": involved.namespace ?? "",
    "involvedObject.name": involved.name ?? "",
    "involvedObject.uid": involved.uid ?? "",
    "involvedObject.apiVersion": involved.apiVersion ?? "",
    "involvedObject.resourceVersion": involved.resourceVersion ?? "",
    "involvedObject.fieldPath": involved.fieldPath ?? "",
    reason: event.reason ?? "",
    reportingComponent: event.reportingComponent ?? "",
    source,
    type: event.type ?? "",
  };
}
