import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueSelf, type Source } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { ControllerContext } from "../controller-context.ts";
import { defineController } from "../define-controller.ts";

interface ProtectionOptions<T> {
  readonly name: string;
  readonly ref: ResourceRef;
  /** Finalizer that protects objects in use. */
  readonly finalizer: string;
  /** Further event sources that may release an object. */
  readonly sources?: readonly Source[];
  isUsed(object: T, signal: AbortSignal): boolean | Promise<boolean>;
}

interface ProtectionContext<T extends KubeObject> extends ControllerContext, ProtectionOptions<T> {
  readonly objects: SharedInformer<T>;
}

/**
 * Creates a controller that adds the finalizer to every object of the resource, and removes it from deleted objects
 * that are not in use.
 */
export function newProtectionController<T extends KubeObject>(
  base: ControllerContext,
  options: ProtectionOptions<T>,
): Controller {
  const ctx: ProtectionContext<T> = { ...base, ...options, objects: base.informers.for<T>(options.ref) };
  return defineController(ctx, {
    name: options.name,
    sources: [enqueueSelf(ctx.objects), ...(options.sources ?? [])],
    reconcile,
  });
}

async function reconcile<T extends KubeObject>(ctx: ProtectionContext<T>, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const { ref, finalizer } = ctx;
  const object = ctx.objects.lister.get(key);
  const step = object === undefined ? "none" : protectionStep(object, finalizer);
  if (object === undefined || step === "none") return done;
  if (step === "check" && (await ctx.isUsed(object, signal))) {
    ctx.log.v(2)?.info("object is in use, keeping its finalizer", { kind: ref.kind, object: key });
    return {
      decision: {
        verdict: "waiting",
        reason: "InUse",
        description: `is in use, and keeps its finalizer ${finalizer} until it is not`,
      },
    };
  }
  const changed = step === "add" ? withFinalizer(object, finalizer) : withoutFinalizer(object, finalizer);
  try {
    await ctx.client.update(ref, changed, { signal });
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
  return done;
}

/**
 * Decides the step for an object: add the finalizer if it is missing (admission adds it to new objects; this covers
 * older ones), or check the use of an object being deleted.
 */
function protectionStep({ metadata }: KubeObject, finalizer: string): "add" | "check" | "none" {
  const held = metadata.finalizers?.includes(finalizer) ?? false;
  if (metadata.deletionTimestamp) return held ? "check" : "none";
  return held ? "none" : "add";
}

function withFinalizer<T extends KubeObject>(object: T, finalizer: string): T {
  return { ...object, metadata: { ...object.metadata, finalizers: [...(object.metadata.finalizers ?? []), finalizer] } };
}

/** Returns a copy; the argument may belong to a cache. */
export function withoutFinalizer<T extends KubeObject>(object: T, finalizer: string): T {
  const finalizers = (object.metadata.finalizers ?? []).filter((name) => name !== finalizer);
  return { ...object, metadata: { ...object.metadata, finalizers } };
}
