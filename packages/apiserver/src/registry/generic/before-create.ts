import { randomUUID } from "node:crypto";
import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { badRequest, invalid } from "@coxswain/apimachinery/errors/status-error";
import type { Steps } from "@coxswain/apimachinery/event-loop/steps";
import { formatTime } from "@coxswain/apimachinery/meta/time";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { isDns1123Subdomain } from "@coxswain/apimachinery/validation/dns";
import { validateKubeFinalizer, validateObjectMeta } from "@coxswain/apimachinery/validation/object-meta";
import { each } from "../rules.ts";
import { nameObject } from "./name-generation.ts";
import type { ResourceDefinition } from "./resource.ts";
import type { Strategy, StrategyContext } from "./strategy.ts";

/**
 * Makes an object from a user ready to be stored for the first time, in place: namespace of the request, strategy,
 * system fields, name, validation.
 * @returns whether the name was generated here.
 * @throws BadRequest, Invalid
 * Source: k8s.io/apiserver pkg/registry/rest/create.go BeforeCreate
 */
export function* beforeCreate(
  definition: ResourceDefinition,
  strategy: Strategy,
  ctx: StrategyContext,
  object: KubeObject,
): Steps<boolean> {
  const { metadata } = object;
  matchNamespace(strategy, ctx, object);
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete metadata.selfLink;
  strategy.prepareForCreate?.(object, ctx);
  metadata.creationTimestamp = formatTime(ctx.now);
  metadata.uid = randomUUID();
  const generated = nameObject(object);
  delete metadata.clusterName;

  const ofMetadata = [
    ...validateObjectMeta(metadata, strategy.namespaceScoped, strategy.validateName ?? isDns1123Subdomain, "metadata"),
    ...kubeFinalizers(strategy, metadata.finalizers),
  ];
  const inSteps = strategy.validateInSteps?.(object, undefined, ctx);
  const own = inSteps ? yield* inSteps : (strategy.validate?.(object, ctx) ?? []);
  const errors = strategy.metadataLast && own.length > 0 ? own : [...ofMetadata, ...own];
  if (errors.length > 0) throw invalid(groupKind(definition), metadata.name ?? "", errors);
  for (const warning of strategy.warningsOnCreate?.(object, ctx) ?? []) ctx.warn(warning);
  strategy.canonicalize?.(object);
  return generated;
}

/** The object's namespace is the request's, also when it says none. @throws BadRequest when it says another one. */
export function matchNamespace(strategy: Strategy, ctx: StrategyContext, object: KubeObject): void {
  const { metadata } = object;
  if (!strategy.namespaceScoped) {
    delete metadata.namespace;
    return;
  }
  metadata.namespace ||= ctx.namespace;
  if (metadata.namespace !== ctx.namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
}

export function kubeFinalizers(strategy: Strategy, finalizers: readonly string[] | undefined): FieldError[] {
  return strategy.anyFinalizer ? [] : each(finalizers, "metadata.finalizers", validateKubeFinalizer);
}

/** Kinds whose types upstream still knows as those of extensions, which is what its refusals name. */
const oldGroups: Readonly<Record<string, string>> = {
  "ingresses.networking.k8s.io": "extensions",
  "networkpolicies.networking.k8s.io": "extensions",
  "podsecuritypolicies.policy": "extensions",
};

/** As refusals of an object name its kind. Source: pkg/apis/extensions/register.go, rest.objectMetaAndKind */
export function groupKind({ group, hubGroup, kind, resource }: ResourceDefinition): { group: string; kind: string } {
  return { group: oldGroups[`${resource}.${group}`] ?? hubGroup ?? group, kind };
}
