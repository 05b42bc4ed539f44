/**
 * Asks the mutating webhooks one after the other, each on what the ones before made of the object. Those that ask for
 * it are asked once more when a later one changed it.
 * Source: k8s.io/apiserver pkg/admission/plugin/webhook/mutating
 */
import { decodeParsed } from "@coxswain/apimachinery/codec/json";
import { internalError } from "@coxswain/apimachinery/errors/status-error";
import { deepClone, deepEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { applyJsonPatch } from "@coxswain/apimachinery/patch/json-patch";
import { mutatingWebhookConfigurations } from "@coxswain/apimachinery/schema/kinds/resources";
import { scheme } from "@coxswain/apimachinery/schema/scheme";
import type { PluginContext } from "../catalogue.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import { type Invocation, newWebhookDispatcher, type WebhookDispatcher } from "../webhook-dispatch.ts";
import type { ResourceVersion } from "../webhook-matcher.ts";

export function mutatingAdmissionWebhook(ctx: PluginContext): AdmissionPlugin {
  const dispatcher = newWebhookDispatcher(ctx, mutatingWebhookConfigurations, "admit");
  return {
    name: "MutatingAdmissionWebhook",
    handles: () => true,
    ready: () => dispatcher.synced,
    async admit(attributes) {
      const again: Invocation[] = [];
      let changedAfter = 0;
      for (const invocation of await dispatcher.concerned(attributes)) {
        const changed = await mutate(ctx, dispatcher, invocation, attributes);
        if (changed) changedAfter = again.length;
        if (invocation.webhook.reinvocationPolicy === "IfNeeded") again.push(invocation);
      }
      for (const invocation of again.slice(0, changedAfter)) await mutate(ctx, dispatcher, invocation, attributes);
    },
  };
}

/** @returns whether the webhook changed the object. */
async function mutate(
  ctx: PluginContext,
  dispatcher: WebhookDispatcher,
  invocation: Invocation,
  attributes: AdmissionAttributes,
): Promise<boolean> {
  const answer = await dispatcher.call(invocation, attributes, true);
  if (answer?.patch === undefined || attributes.object === undefined) return false;
  const { target } = invocation;
  // The webhook patches what it was shown; a shared object is never written to.
  const shown = deepClone(dispatcher.objectsFor(attributes, target).object as KubeObject);
  let patched: KubeObject;
  try {
    patched = decode(applyJsonPatch(shown, answer.patch), attributes, target);
  } catch (err) {
    throw internalError(err);
  }
  const next = attributes.subresource === "" ? ctx.versions.toHub(patched, target) : patched;
  if (deepEqual(next, attributes.object)) return false;
  replaceContents(attributes.object, next);
  return true;
}

function decode(value: unknown, { kind, subresource }: AdmissionAttributes, target: ResourceVersion): KubeObject {
  const type = scheme.kind(subresource === "" ? target : kind);
  return type === undefined ? (value as KubeObject) : decodeParsed(value, type).object;
}

/** Whoever holds the object sees the change; keys are data of users and never reach the prototype. */
function replaceContents(object: KubeObject, next: KubeObject): void {
  for (const key of Object.keys(object)) delete (object as unknown as Record<string, unknown>)[key];
  for (const key of Object.keys(next)) {
    const value = (next as unknown as Record<string, unknown>)[key];
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  }
}
