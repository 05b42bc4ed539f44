import type { FieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqualInSteps } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { PodTemplateSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { templateWarnings } from "./core/pods/warnings.ts";
import type { Strategy, StrategyContext } from "./generic/strategy.ts";

/** An object with spec and status of any kind. */
// biome-ignore lint/suspicious/noExplicitAny: the parts are those of many kinds.
type SpecAndStatus = KubeObject & { spec?: any; status?: any };

interface StrategyOptions<T extends KubeObject> extends Omit<Strategy<T>, "namespaceScoped" | "validate"> {
  /** For create and update; `current` is the stored object on update, for ratcheting. */
  validate?(next: T, ctx: StrategyContext, current?: T): FieldError[];
  readonly namespaced: boolean;
  /** The kind has `/status`: the status in requests to the main resource is ignored. */
  readonly status?: boolean;
  /** metadata.generation counts changes of spec. */
  readonly generation?: boolean;
  /** Pod template of the kind, for which warnings are issued. */
  readonly template?: TemplateOf<T>;
}

interface TemplateOf<T> {
  /** Path of the template, e.g. `spec.template`. */
  readonly path: string;
  readonly of: (object: T) => PodTemplateSpec | undefined;
}

/** The template of most workloads, `spec.template`. */
export const specTemplate: TemplateOf<KubeObject & { spec?: { template?: PodTemplateSpec } }> = {
  path: "spec.template",
  of: ({ spec }) => spec?.template,
};

/**
 * The strategy shared by most kinds: status is only changed through its subresource, generation counts changes of the spec, and
 * updates are validated by `validate` and then `validateUpdate`.
 */
export function strategyOf<T extends KubeObject>(options: StrategyOptions<T>): Strategy<T> {
  const { namespaced, status, generation, template, ...rest } = options;
  return {
    ...rest,
    namespaceScoped: namespaced,
    allowCreateOnUpdate: rest.allowCreateOnUpdate ?? false,
    allowUnconditionalUpdate: rest.allowUnconditionalUpdate ?? true,
    ...(status ? { resetFields: rest.resetFields ?? ["status"] } : {}),
    prepareForCreate(next: T, ctx: StrategyContext) {
      if (status) (next as SpecAndStatus).status = {}; // cast: every kind with this option has a status
      if (generation) next.metadata.generation = 1;
      rest.prepareForCreate?.(next, ctx);
    },
    *prepareForUpdate(next: T, current: T, ctx: StrategyContext): Steps<void> {
      if (status) keep(next, current, "status");
      if (generation) next.metadata.generation = current.metadata.generation ?? 0;
      const preparing = rest.prepareForUpdate?.(next, current, ctx);
      if (preparing) yield* preparing;
      // Cast: every kind with this option has a spec.
      if (generation && !(yield* semanticEqualInSteps((next as SpecAndStatus).spec, (current as SpecAndStatus).spec))) {
        next.metadata.generation = (current.metadata.generation ?? 0) + 1;
      }
    },
    validateUpdate(next: T, current: T, ctx: StrategyContext): FieldError[] {
      return [...(rest.validate?.(next, ctx, current) ?? []), ...(rest.validateUpdate?.(next, current, ctx) ?? [])];
    },
    ...(template ? templateWarningsOf(template) : {}),
  };
}

/** Warnings on create and on updates that increment the generation. */
function templateWarningsOf<T extends KubeObject>({ path, of }: TemplateOf<T>) {
  const warnings = (next: T): string[] => templateWarnings(of(next), path);
  return {
    warningsOnCreate: warnings,
    warningsOnUpdate: (next: T, current: T): string[] =>
      next.metadata.generation === current.metadata.generation ? [] : warnings(next),
  };
}

interface StatusStrategyOptions<T extends KubeObject> {
  readonly namespaced: boolean;
  readonly anyFinalizer?: boolean;
  /** Runs after everything but status and metadata was restored from the stored object. */
  readonly prepareForUpdate?: (next: T, current: T, ctx: StrategyContext) => void;
  readonly validateUpdate?: (next: T, current: T, ctx: StrategyContext) => FieldError[];
  /** Replaces `validateUpdate`. */
  readonly validateInSteps?: Strategy<T>["validateInSteps"];
  /** Labels cannot be changed through `/status` (deployments). */
  readonly keepLabels?: boolean;
  /** Labels, annotations, finalizers and owner references cannot be changed through `/status`. */
  readonly keepMetadata?: boolean;
  /** Default: what cannot be changed. */
  readonly resetFields?: readonly string[];
}

const keptOfMetadata = ["labels", "annotations", "finalizers", "ownerReferences"] as const;

/** The strategy of `/status`: only status and metadata can change. */
export function statusStrategyOf<T extends KubeObject>(options: StatusStrategyOptions<T>): Strategy<T> {
  const { keepLabels, keepMetadata } = options;
  const kept = keepMetadata ? keptOfMetadata : keepLabels ? (["labels"] as const) : [];
  const notOwned = keepMetadata ? ["metadata"] : keepLabels ? ["metadata.labels"] : [];
  return {
    namespaceScoped: options.namespaced,
    ...(options.anyFinalizer ? { anyFinalizer: true } : {}),
    resetFields: options.resetFields ?? ["spec", ...notOwned],
    prepareForUpdate(next: T, current: T, ctx: StrategyContext) {
      for (const field of new Set([...Object.keys(next), ...Object.keys(current)])) {
        if (field !== "status" && field !== "metadata" && field !== "apiVersion" && field !== "kind") keep(next, current, field);
      }
      if (current.metadata.generation === undefined) delete next.metadata.generation;
      else next.metadata.generation = current.metadata.generation;
      for (const field of kept) {
        if (current.metadata[field] === undefined) delete next.metadata[field];
        else Object.assign(next.metadata, { [field]: current.metadata[field] });
      }
      options.prepareForUpdate?.(next, current, ctx);
    },
    validateUpdate: (next: T, current: T, ctx: StrategyContext) => options.validateUpdate?.(next, current, ctx) ?? [],
    ...(options.validateInSteps && { validateInSteps: options.validateInSteps }),
  };
}

/** Restores a top-level field from the stored object. */
export function keep(next: KubeObject, current: KubeObject, field: string): void {
  const to = next as unknown as Record<string, unknown>; // cast: read by field name
  const from = current as unknown as Record<string, unknown>; // cast: read by field name
  if (from[field] === undefined) delete to[field];
  else to[field] = from[field];
}
