import { invalid } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { pathSegmentFaults } from "@coxswain/apimachinery/objects/validation/dns";
import { validatingObjectMeta, validatingObjectMetaUpdate } from "@coxswain/apimachinery/objects/validation/object-meta";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { groupKind, kubeFinalizers, matchNamespace } from "./before-create.ts";
import type { ResourceDefinition } from "./resource.ts";
import type { Strategy, StrategyContext } from "./strategy.ts";

/**
 * Prepares the new state of a stored object, in place: copies immutable metadata from `current`, then runs strategy and
 * validation.
 * @throws BadRequest, Invalid
 * Source: k8s.io/apiserver pkg/registry/rest/update.go BeforeUpdate
 */
export function* beforeUpdate(
  definition: ResourceDefinition,
  strategy: Strategy,
  ctx: StrategyContext,
  next: KubeObject,
  current: KubeObject,
): Steps<void> {
  const old = current.metadata;
  matchNamespace(strategy, ctx, next);
  // Only strategies increment the generation.
  if (old.generation == null) delete next.metadata.generation;
  else next.metadata.generation = old.generation;
  delete next.metadata.selfLink;
  const { managedFields } = next.metadata;
  yield;
  const preparing = strategy.prepareForUpdate?.(next, current, ctx);
  if (preparing) yield* preparing;
  yield;
  if (next.metadata === old) next.metadata = { ...old };
  const { metadata } = next;
  // managedFields belong to this write, even when the strategy restores the stored metadata.
  if (managedFields === undefined) delete metadata.managedFields;
  else metadata.managedFields = managedFields;
  delete metadata.clusterName;
  metadata.uid ||= old.uid ?? "";
  if (old.creationTimestamp) metadata.creationTimestamp = old.creationTimestamp;
  // An update cannot cancel or reschedule a deletion. Setting deletionTimestamp by update is rejected by the validation below.
  if (old.deletionTimestamp) metadata.deletionTimestamp = old.deletionTimestamp;
  if (old.deletionGracePeriodSeconds != null) metadata.deletionGracePeriodSeconds ??= old.deletionGracePeriodSeconds;

  const inSteps = strategy.validateInSteps?.(next, current, ctx);
  const own = inSteps ? yield* inSteps : (strategy.validateUpdate?.(next, current, ctx) ?? []);
  yield;
  const errors = [
    ...(yield* validatingObjectMeta(metadata, strategy.namespaceScoped, pathSegmentFaults, "metadata")),
    ...(yield* validatingObjectMetaUpdate(metadata, old, "metadata")),
    ...(yield* kubeFinalizers(strategy, metadata.finalizers)),
    ...own,
  ];
  yield;
  if (errors.length > 0) throw invalid(groupKind(definition), metadata.name ?? "", errors);
  for (const warning of strategy.warningsOnUpdate?.(next, current, ctx) ?? []) ctx.warn(warning);
  strategy.canonicalize?.(next);
}
