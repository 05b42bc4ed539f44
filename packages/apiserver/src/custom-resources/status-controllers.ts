/**
 * Maintains the status of CustomResourceDefinitions: accepted names and conditions. `serving.ts` reports served definitions
 * through `establish`.
 * Source: apiextensions-apiserver pkg/controller/{status,establish,nonstructuralschema,apiapproval}
 */
import type { Client } from "@coxswain/apimachinery/client/client";
import { type Controller, done, newController, type QueueMetrics } from "@coxswain/apimachinery/controller/controller";
import { enqueueMapped, enqueueSelf, type Source } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { deepEqual, semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { customResourceDefinitions } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { type ConditionState, withCondition } from "../registry/apiextensions/customresourcedefinitions/conditions.ts";
import {
  type CustomResourceDefinition,
  conditionOf,
  type DefinitionStatus,
  isSameState,
  isTrue,
  nameOf,
  statusOf,
} from "./definitions.ts";
import { decideNames } from "./names.ts";
import { apiApproval, nonStructuralSchema } from "./status-rules.ts";

interface StatusControllerOptions {
  readonly client: Client;
  readonly definitions: SharedInformer<CustomResourceDefinition>;
  readonly queues?: QueueMetrics | undefined;
  readonly turns?: Turns | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

interface StatusControllers {
  /** Sets the Established condition after `delayMs`, for a definition whose names are accepted and served. */
  establish(name: string, delayMs: number): void;
  run(signal: AbortSignal): Promise<void>;
}

/** Returns the status to write; undefined when it is up to date. `now` is in ms since the epoch. */
type Rule = (
  definition: CustomResourceDefinition,
  now: number,
) => DefinitionStatus | undefined | Promise<DefinitionStatus | undefined>;

export function newStatusControllers(options: StatusControllerOptions): StatusControllers {
  const { client, definitions, queues, turns = new Turns(), clock, log } = options;
  /** Own writes that the lister may not have yet. Without them, a name could be accepted for two definitions. */
  const written = new Map<string, CustomResourceDefinition>();
  const groupOf = ({ spec }: CustomResourceDefinition): CustomResourceDefinition[] =>
    definitions.lister
      .list()
      .filter((other) => other.spec.group === spec.group)
      .map((other) => newerOf(other, written.get(nameOf(other))));
  definitions.addHandler({ deleted: (last) => void written.delete(nameOf(last)) });
  const write = (definition: CustomResourceDefinition, status: DefinitionStatus, signal: AbortSignal) =>
    client.update<CustomResourceDefinition>(
      customResourceDefinitions,
      { ...definition, status },
      { subresource: "status", signal },
    );
  const controller = (name: string, rule: Rule, sources: readonly Source[], workers = 5): Controller =>
    newController({
      name,
      sources,
      async reconcile(key, signal) {
        const definition = definitions.lister.get(key);
        const status = definition && (await rule(definition, clock.now()));
        if (definition === undefined || status === undefined) return done;
        try {
          written.set(key, await write(definition, status, signal));
        } catch (err) {
          // Another writer was first: its change arrives as an event and enqueues the definition again.
          if (!isNotFound(err) && !isConflict(err)) throw err;
        }
        return done;
      },
      workers,
      metrics: queues,
      turns,
      clock,
      log,
    });

  // A definition that takes or releases names may affect every other one of its group that does not have all its names.
  const wholeGroup = enqueueMapped(
    definitions,
    (changed) => [nameOf(changed), ...groupOf(changed).filter(lacksNames).map(nameOf)],
    (old, now) => !deepEqual(old.spec.names, now.spec.names) || !deepEqual(old.status?.acceptedNames, now.status?.acceptedNames),
  );
  const naming = controller(
    "crd_naming_condition_controller",
    (one, now) => namingStatus(newerOf(one, written.get(nameOf(one))), () => groupOf(one), now),
    [wholeGroup, enqueueSelf(definitions)],
    1, // a single worker, so that no two definitions take the same name
  );
  const establishing = controller("crdEstablishing", establishedStatus, []);
  const controllers = [
    naming,
    establishing,
    controller(
      "non_structural_schema_condition_controller",
      conditionRule("NonStructuralSchema", (definition) => turns.run(nonStructuralSchema(definition))),
      [enqueueSelf(definitions)],
    ),
    controller(
      "kubernetes_api_approval_conformant_condition_controller",
      conditionRule("KubernetesAPIApprovalPolicyConformant", apiApproval),
      [enqueueSelf(definitions)],
    ),
  ];
  return {
    establish: (name, delayMs) => (delayMs > 0 ? establishing.enqueueAfter(name, delayMs) : establishing.enqueue(name)),
    async run(signal) {
      await Promise.all(controllers.map((one) => one.run(signal)));
    },
  };
}

const lacksNames = ({ spec, status }: CustomResourceDefinition): boolean => !semanticEqual(spec.names, status?.acceptedNames);

function namingStatus(
  definition: CustomResourceDefinition,
  group: () => readonly CustomResourceDefinition[],
  now: number,
): DefinitionStatus | undefined {
  if (!lacksNames(definition)) return undefined;
  const status = statusOf(definition);
  const { acceptedNames, namesAccepted, established } = decideNames(definition, group());
  const isSame = deepEqual(status.acceptedNames, acceptedNames);
  if (isSame && isSameState(namesAccepted, conditionOf(definition, "NamesAccepted"))) return undefined;
  const conditions = withCondition(withCondition(status.conditions, namesAccepted, now), established, now);
  return { ...status, acceptedNames, conditions };
}

const established: ConditionState = {
  type: "Established",
  status: "True",
  reason: "InitialNamesAccepted",
  message: "the initial names have been accepted",
};

function establishedStatus(definition: CustomResourceDefinition, now: number): DefinitionStatus | undefined {
  if (!isTrue(definition, "NamesAccepted") || isTrue(definition, "Established")) return undefined;
  const status = statusOf(definition);
  return { ...status, conditions: withCondition(status.conditions, established, now) };
}

/** Rule that adds, updates or removes one condition. @param wanted undefined: the condition is removed */
function conditionRule(
  type: ConditionState["type"],
  wanted: (definition: CustomResourceDefinition) => ConditionState | undefined | Promise<ConditionState | undefined>,
): Rule {
  return async (definition, now) => {
    const state = await wanted(definition);
    const old = conditionOf(definition, type);
    if (isSameState(state, old)) return undefined;
    const status = statusOf(definition);
    const conditions =
      state === undefined ? status.conditions.filter((one) => one.type !== type) : withCondition(status.conditions, state, now);
    return { ...status, conditions };
  };
}

function newerOf(listed: CustomResourceDefinition, written: CustomResourceDefinition | undefined): CustomResourceDefinition {
  const revision = (one: CustomResourceDefinition): number => Number(one.metadata.resourceVersion ?? 0);
  return written !== undefined && revision(written) > revision(listed) ? written : listed;
}
