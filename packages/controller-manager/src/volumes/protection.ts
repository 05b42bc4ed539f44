import { type Controller, done, newController } from "@coxswain/apimachinery/controller/controller";
import { enqueueSelf, type Source } from "@coxswain/apimachinery/controller/sources";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { ResourceRef } from "@coxswain/apimachinery/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { ControllerContext } from "../controller-context.ts";

export interface ProtectionOptions<T> {
  readonly name: string;
  readonly ref: ResourceRef;
  /** Holds what is deleted while it is in use. */
  readonly finalizer: string;
  /** What, besides a change of the object itself, may free it. */
  readonly sources?: readonly Source[];
  isUsed(object: T, signal: AbortSignal): boolean | Promise<boolean>;
}

/** A controller that gives every object of a resource a finalizer, and takes it away when a deleted one is used no more. */
export function newProtectionController<T extends KubeObject>(ctx: ControllerContext, options: ProtectionOptions<T>): Controller {
  const { name, ref, finalizer, sources = [], isUsed } = options;
  const informer = ctx.informers.for<T>(ref);
  return newController({
    name,
    sources: [enqueueSelf(informer), ...sources],
    async reconcile(key, signal) {
      const object = informer.lister.get(key);
      const step = object === undefined ? "none" : protectionStep(object, finalizer);
      if (object === undefined || step === "none") return done;
      if (step === "check" && (await isUsed(object, signal))) {
        ctx.log.v(2)?.info("keeping what is in use", { kind: ref.kind, object: key });
        return done;
      }
      const changed = step === "add" ? withFinalizer(object, finalizer) : withoutFinalizer(object, finalizer);
      try {
        await ctx.client.update(ref, changed, { signal });
      } catch (err) {
        if (!isNotFound(err)) throw err;
      }
      return done;
    },
    log: ctx.log,
    clock: ctx.clock,
    metrics: ctx.metrics,
  });
}

/**
 * An object that lives gets the finalizer (admission gives it to new ones; this is for those from before); one that is
 * being deleted is checked whether somebody still uses it.
 */
function protectionStep({ metadata }: KubeObject, finalizer: string): "add" | "check" | "none" {
  const held = metadata.finalizers?.includes(finalizer) ?? false;
  if (metadata.deletionTimestamp) return held ? "check" : "none";
  return held ? "none" : "add";
}

function withFinalizer<T extends KubeObject>(object: T, finalizer: string): T {
  return { ...object, metadata: { ...object.metadata, finalizers: [...(object.metadata.finalizers ?? []), finalizer] } };
}

export function withoutFinalizer<T extends KubeObject>(object: T, finalizer: string): T {
  const finalizers = (object.metadata.finalizers ?? []).filter((name) => name !== finalizer);
  return { ...object, metadata: { ...object.metadata, finalizers } };
}
