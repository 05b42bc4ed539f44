import { type FieldError, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Namespace } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { dns1123LabelProblems } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { keep, statusStrategyOf } from "../../strategies.ts";
import { namespaceNameLabel } from "./defaults.ts";
import { validateFinalizer } from "./finalizers.ts";

/**
 * A namespace is deleted in two phases: it becomes Terminating and keeps `kubernetes` in spec.finalizers until the namespace
 * controller has deleted its contents and removes the finalizer through /finalize.
 * Source: pkg/registry/core/namespace/strategy.go, storage/storage.go
 */
export const namespaceStrategy: Strategy<Namespace> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  resetFields: ["status"],
  validateName: dns1123LabelProblems,
  prepareForCreate(next) {
    next.status = { phase: "Active" };
    const finalizers = next.spec?.finalizers ?? [];
    next.spec = { ...next.spec, finalizers: finalizers.includes("kubernetes") ? finalizers : [...finalizers, "kubernetes"] };
    if (next.metadata.name) next.metadata.labels = { ...next.metadata.labels, [namespaceNameLabel]: next.metadata.name };
  },
  prepareForUpdate(next, current) {
    next.spec = { ...next.spec };
    if (current.spec?.finalizers === undefined) delete next.spec.finalizers;
    else next.spec.finalizers = current.spec.finalizers;
    keep(next, current, "status");
  },
  validate: (next) => (next.spec?.finalizers ?? []).flatMap((name) => validateFinalizer(name, "spec.finalizers")),
  canonicalize(next) {
    if (next.metadata.name) next.metadata.labels = { ...next.metadata.labels, [namespaceNameLabel]: next.metadata.name };
  },
  beginDeletion(current, ctx) {
    if (!current.metadata.deletionTimestamp) {
      const metadata = { ...current.metadata, deletionTimestamp: formatTime(ctx.now()) };
      return { ...current, metadata, status: { ...current.status, phase: "Terminating" } };
    }
    return (current.spec?.finalizers?.length ?? 0) > 0 ? "pending" : undefined;
  },
  completesDeletion: isFinalized,
  defaultGarbageCollection: "Background",
};

/** Whether the contents of the namespace are deleted: spec.finalizers is empty. */
export function isFinalized(namespace: Namespace): boolean {
  return (namespace.spec?.finalizers?.length ?? 0) === 0;
}

export const namespaceStatusStrategy: Strategy<Namespace> = {
  ...statusStrategyOf<Namespace>({ namespaced: false }),
  completesDeletion: isFinalized,
  validateUpdate(next) {
    const errors: FieldError[] = [];
    const phase: string = next.status?.phase ?? "";
    if (next.metadata.deletionTimestamp) {
      if (phase !== "Terminating")
        errors.push(invalidValue("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty"));
    } else if (phase !== "Active") {
      errors.push(invalidValue("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty"));
    }
    return errors;
  },
};
