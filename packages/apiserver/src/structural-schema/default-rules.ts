import {
  addErrors,
  child,
  type FieldError,
  formatFieldErrors,
  invalidValue,
  mapKey,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { CheckBudget } from "./check-budget.ts";
import { embeddedResourceFaults } from "./metadata.ts";
import { endsStep, newPace, type Pace } from "./pace.ts";
import { prune } from "./prune.ts";
import { hasDefault, isEmbedded, itemsOf, metaFields, mostLevels, type Schema } from "./schema.ts";
import { schemaFaultSteps } from "./values.ts";

/**
 * Validates the defaults in a structural schema: each must be valid by its schema and have no unknown fields.
 * Source: apiextensions-apiserver pkg/apiserver/schema/defaulting/validation.go ValidateDefaults
 * @param pruned whether unknown fields are errors
 * @param budget shared by all defaults of a definition
 */
export function* validatingDefaults(schema: Schema, path: string, pruned: boolean, budget: CheckBudget): Steps<FieldError[]> {
  const place = { pruned, level: 0, budget, pace: newPace() };
  return yield* walk({ ...schema, "x-kubernetes-embedded-resource": true }, path, place);
}

interface Place {
  readonly pruned: boolean;
  readonly level: number;
  readonly budget: CheckBudget;
  readonly pace: Pace;
  /** Set when the value is part of the apiVersion, kind or metadata of a resource. */
  readonly within?: Surroundings;
}

interface Surroundings {
  /** Schema of the resource. */
  readonly schema: Schema;
  /** Builds a minimal resource with the value in its place. */
  readonly resourceWith: (value: unknown) => Readonly<Record<string, unknown>>;
}

const typeMeta = { apiVersion: "validation/v1", kind: "Validation" };

function* walk(schema: Schema, path: string, place: Place): Steps<FieldError[]> {
  const { pruned, level, budget, pace, within: outer } = place;
  if (level > mostLevels) return [];
  if (endsStep(pace)) yield;
  const isResource = isEmbedded(schema);
  const within = isResource ? undefined : outer;
  const errors = hasDefault(schema)
    ? yield* ownDefault(schema, child(path, "default"), { pruned, isResource, within, budget })
    : [];
  function* below(part: Schema, at: string, inner: Surroundings | undefined): Steps<void> {
    const { within: _outer, ...others } = place;
    addErrors(errors, yield* walk(part, at, { ...others, level: level + 1, ...(inner ? { within: inner } : {}) }));
  }
  const items = itemsOf(schema);
  if (items)
    yield* below(items, child(path, "items"), within && { ...within, resourceWith: (value) => within.resourceWith([value]) });
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const field = (value: unknown): Record<string, unknown> => Object.fromEntries([[name, value]]);
    const inner = isResource
      ? { schema, resourceWith: (value: unknown) => ({ ...typeMeta, ...field(value) }) }
      : within && { ...within, resourceWith: (value: unknown) => within.resourceWith(field(value)) };
    yield* below(property, mapKey(child(path, "properties"), name), isResource && !metaFields.includes(name) ? undefined : inner);
  }
  return errors;
}

function* ownDefault(
  schema: Schema,
  path: string,
  {
    pruned,
    isResource,
    within,
    budget,
  }: { pruned: boolean; isResource: boolean; within: Surroundings | undefined; budget: CheckBudget },
): Steps<FieldError[]> {
  const value = schema.default;
  if (within) {
    const faults = embeddedResourceFaults(within.resourceWith(value), within.schema, "", true);
    const text = `must result in valid metadata: ${formatFieldErrors(faults)}`;
    return faults.length > 0 ? [invalidValue(path, value, text)] : yield* schemaFaultSteps(value, schema, path, budget);
  }
  const hasUnknown = pruned && !deepEqual(prune(value, schema, isResource), value);
  const faults = embeddedResourceFaults(value, schema, path, isResource);
  return [
    ...(hasUnknown ? [invalidValue(path, value, "must not have unknown fields")] : []),
    ...(faults.length > 0 ? faults : yield* schemaFaultSteps(value, schema, path, budget)),
  ];
}
