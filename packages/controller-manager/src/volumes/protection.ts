import type { KubeObject } from "@coxswain/apimachinery/meta/types";

/** What a finalizer that holds an object in use asks for. */
export type ProtectionStep = "add" | "check" | "none";

/**
 * An object that lives gets the finalizer (admission gives it to new ones; this is for those from before); one that is
 * being deleted is checked whether somebody still uses it.
 */
export function protectionStep({ metadata }: KubeObject, finalizer: string): ProtectionStep {
  const held = metadata.finalizers?.includes(finalizer) ?? false;
  if (metadata.deletionTimestamp) return held ? "check" : "none";
  return held ? "none" : "add";
}

export function withFinalizer<T extends KubeObject>(object: T, finalizer: string): T {
  return { ...object, metadata: { ...object.metadata, finalizers: [...(object.metadata.finalizers ?? []), finalizer] } };
}

export function withoutFinalizer<T extends KubeObject>(object: T, finalizer: string): T {
  const finalizers = (object.metadata.finalizers ?? []).filter((name) => name !== finalizer);
  return { ...object, metadata: { ...object.metadata, finalizers } };
}
