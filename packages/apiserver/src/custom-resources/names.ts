/**
 * Accepted names of a definition: the requested ones that no other definition of its group has.
 * Source: apiextensions-apiserver pkg/controller/status/naming_controller.go
 */
import { joinedFailures } from "@coxswain/apimachinery/objects/errors/joined-failures";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { CustomResourceDefinitionNames } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import type { ConditionState } from "../registry/apiextensions/customresourcedefinitions/conditions.ts";
import { type CustomResourceDefinition, conditionOf, statusOf } from "./definitions.ts";

interface NamingOutcome {
  readonly acceptedNames: CustomResourceDefinitionNames;
  readonly namesAccepted: ConditionState;
  /** Established starts as False and becomes True once the resource is served. */
  readonly established: ConditionState;
}

/** Pure function. @param group all definitions of the group, including this one */
export function decideNames(definition: CustomResourceDefinition, group: readonly CustomResourceDefinition[]): NamingOutcome {
  const taken = group.map((one) => statusOf(one).acceptedNames);
  const resources = new Set(taken.flatMap(({ plural, singular = "", shortNames = [] }) => [plural, singular, ...shortNames]));
  const kinds = new Set(taken.flatMap(({ kind, listKind = "" }) => [kind, listKind]));
  const wanted = definition.spec.names;
  const had = statusOf(definition).acceptedNames;
  const acceptedNames: CustomResourceDefinitionNames = { ...had };
  let conflict: Pick<ConditionState, "reason" | "message"> | undefined;
  // Checks all names, to accept as many as possible; the condition reports the last conflict.
  for (const { field, used } of [
    { field: "plural", used: resources },
    { field: "singular", used: resources },
    { field: "shortNames", used: resources },
    { field: "kind", used: kinds },
    { field: "listKind", used: kinds },
  ] as const) {
    const own = new Set(namesIn(had[field]));
    const refused = namesIn(wanted[field]).filter((name) => !own.has(name) && used.has(name));
    if (refused.length > 0) conflict = { reason: `${reasons[field]}Conflict`, message: inUse(refused) };
    else if (wanted[field] === undefined) delete acceptedNames[field];
    else Object.assign(acceptedNames, { [field]: wanted[field] });
  }
  if (wanted.categories === undefined) delete acceptedNames.categories;
  else acceptedNames.categories = wanted.categories;
  const namesAccepted: ConditionState =
    conflict === undefined
      ? { type: "NamesAccepted", status: "True", reason: "NoConflicts", message: "no conflicts found" }
      : { type: "NamesAccepted", status: "False", ...conflict };
  return { acceptedNames, namesAccepted, established: establishedBy(definition, namesAccepted) };
}

const reasons = { plural: "Plural", singular: "Singular", shortNames: "ShortNames", kind: "Kind", listKind: "ListKind" } as const;

function namesIn(names: string | readonly string[] | undefined): readonly string[] {
  return names === undefined ? [] : [names].flat();
}

/** Error text; several errors are formatted like a Go aggregate. */
function inUse(names: readonly string[]): string {
  return joinedFailures(names.map((name) => `${goQuote(name)} is already in use`));
}

function establishedBy(definition: CustomResourceDefinition, namesAccepted: ConditionState): ConditionState {
  const old = conditionOf(definition, "Established");
  if (old?.status !== "True" && namesAccepted.status === "True") {
    const message = "the initial names have been accepted";
    return { type: "Established", status: "False", reason: "Installing", message };
  }
  return old ?? { type: "Established", status: "False", reason: "NotAccepted", message: "not all names are accepted" };
}
