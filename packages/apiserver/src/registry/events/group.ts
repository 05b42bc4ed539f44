import type { Event } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pathSegmentFaults } from "@coxswain/apimachinery/objects/validation/dns";
import { coreEventFields } from "../core/events/fields.ts";
import { validateEvent, validateNewEvent } from "../core/events/strategy.ts";
import { eventTable } from "../core/events/table.ts";
import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import type { Strategy } from "../generic/strategy.ts";
import { eventFromCore, eventToCore } from "./events/conversion.ts";

const strategy: Strategy<Event> = {
  namespaceScoped: true,
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: true,
  defaultGarbageCollection: "Unsupported",
  validateName: pathSegmentFaults,
  metadataLast: true,
  // `validateNewEvent` checks those of v1; other finalizers are not restricted, like upstream's.
  anyFinalizer: true,
  // v1beta1 is validated like core v1.
  validate: (next, { requestVersion }) => (requestVersion === "v1beta1" ? validateEvent(next) : validateNewEvent(next)),
  validateUpdate: validateEvent,
};

const version = (name: string) => ({ version: name, toHub: eventToCore, fromHub: eventFromCore(`events.k8s.io/${name}`) });

/** Another representation of core v1 events, which are the hub and share the objects in etcd. */
export function eventsResources(): ResourceDefinition[] {
  return inGroup("events.k8s.io", [
    {
      resource: "events",
      kind: "Event",
      shortNames: ["ev"],
      namespaced: true,
      versions: [
        version("v1"),
        {
          ...version("v1beta1"),
          deprecation: "events.k8s.io/v1beta1 Event is deprecated in v1.19+, unavailable in v1.25+; use events.k8s.io/v1 Event",
        },
      ],
      hub: "v1",
      hubGroup: "",
      storage: { group: "", version: "v1" },
      storageFolder: "events",
      strategy,
      selectableFields: (event: Event) =>
        Object.fromEntries(
          Object.entries(coreEventFields(event))
            .filter(([name]) => name !== "source")
            .map(([name, value]) => [name.replace(/^involvedObject\./, "regarding.").replace("Component", "Controller"), value]),
        ),
      ttlSeconds: (flags) => flags.eventTtlSeconds,
      table: eventTable,
    },
  ]);
}
