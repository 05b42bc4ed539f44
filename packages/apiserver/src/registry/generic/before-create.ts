import { randomUUID } from "node:crypto";
import type { FieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import { badRequest, invalid } from "@coxswain/apimachinery/objects/errors/status-error";
import { generateName } from "@coxswain/apimachinery/objects/meta/names";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { dns1123SubdomainProblems } from "@coxswain/apimachinery/objects/validation/dns";
import { validateKubeFinalizer, validatingObjectMeta } from "@coxswain/apimachinery/objects/validation/object-meta";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { eachInSteps } from "../rules.ts";
import type { ResourceDefinition } from "./resource.ts";
import type { Strategy, StrategyContext } from "./strategy.ts";

/**
 * Prepares a new object for storage, in place: namespace of the request, strategy, system fields, name, validation.
 * @returns whether the name was generated
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
  metadata.creationTimestamp = formatTime(ctx.now());
  metadata.uid = randomUUID();
  const generated = nameObject(object);
  delete metadata.clusterName;

  yield;
  const ofMetadata = [
    ...(yield* validatingObjectMeta(
      metadata,
      strategy.namespaceScoped,
      strategy.validateName ?? dns1123SubdomainProblems,
      "metadata",
    )),
    ...(yield* kubeFinalizers(strategy, metadata.finalizers)),
  ];
  yield;
  const inSteps = strategy.validateInSteps?.(object, undefined, ctx);
  const own = inSteps ? yield* inSteps : (strategy.validate?.(object, ctx) ?? []);
  yield;
  const errors = strategy.metadataLast && own.length > 0 ? own : [...ofMetadata, ...own];
  if (errors.length > 0) throw invalid(groupKind(definition), metadata.name ?? "", errors);
  for (const warning of strategy.warningsOnCreate?.(object, ctx) ?? []) ctx.warn(warning);
  strategy.canonicalize?.(object);
  return generated;
}

/** Sets an empty namespace to that of the request. @throws BadRequest when the object has a different one */
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

/** Validates finalizers; no errors for strategies with `anyFinalizer`. */
export function* kubeFinalizers(strategy: Strategy, finalizers: readonly string[] | undefined): Steps<FieldError[]> {
  if (strategy.anyFinalizer || finalizers === undefined) return []; // most have none
  return yield* eachInSteps(finalizers, "metadata.finalizers", validateKubeFinalizer);
}

/** Kinds whose internal types upstream still registers in extensions; error texts name that group. */
const oldGroups: Readonly<Record<string, string>> = {
  "ingresses.networking.k8s.io": "extensions",
  "networkpolicies.networking.k8s.io": "extensions",
  "podsecuritypolicies.policy": "extensions",
};

/** Group and kind named in the error texts of an object. Source: pkg/apis/extensions/register.go, rest.objectMetaAndKind */
export function groupKind({ group, hubGroup, kind, resource }: ResourceDefinition): { group: string; kind: string } {
  return { group: oldGroups[`${resource}.${group}`] ?? hubGroup ?? group, kind };
}

/** Upper bound of creates tried with generated names. Source: KEP-4420 (upstream 1.23 does not retry) */
export const generatedNameAttempts = 8;

/** Sets `metadata.name` of an object that has only `generateName`. @returns true when it generated a name */
export function nameObject(object: KubeObject): boolean {
  const { metadata } = object;
  if (!metadata.generateName || metadata.name) return false;
  metadata.name = generateName(metadata.generateName);
  return true;
}
