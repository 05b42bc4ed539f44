/**
 * Calls the mutating webhooks sequentially, each with the object as changed by the previous ones. When one changed it, the
 * chain runs all mutating plugins a second time, and webhooks with `reinvocationPolicy: IfNeeded` see the later changes.
 * Source: k8s.io/apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go
 */

import { decodeParsed, parseLargeJson } from "@coxswain/apimachinery/objects/codec/json";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { internalError } from "@coxswain/apimachinery/objects/errors/status-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import { formatGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { KubeObject, Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { jsonPatchSteps } from "@coxswain/apimachinery/objects/patch/json-patch";
import { mutatingWebhookConfigurations } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { WebhookCallError } from "../webhooks/caller.ts";
import { type Invocation, WebhookDispatcher } from "../webhooks/dispatch.ts";
import { WebhookReinvocation } from "../webhooks/reinvocation.ts";
import type { WebhookAnswer } from "../webhooks/review.ts";

const auditPrefix = "mutation.webhook.admission.k8s.io/";
const patchAuditPrefix = "patch.webhook.admission.k8s.io/";

export function mutatingAdmissionWebhook(ctx: PluginContext): AdmissionPlugin {
  const plugin = "MutatingAdmissionWebhook";
  const dispatcher = new WebhookDispatcher(ctx, {
    configurations: mutatingWebhookConfigurations,
    plugin,
    type: "admit",
    failedOpenPrefix: `failed-open.${auditPrefix}`,
  });
  return {
    name: plugin,
    handles: () => true,
    ready: () => dispatcher.synced,
    async admit(attributes) {
      const registered = dispatcher.registered();
      if (registered.length === 0) return;
      const again = attributes.round === 1;
      attributes.reinvocation ??= new WebhookReinvocation();
      const { reinvocation } = attributes;
      if (again) reinvocation.comeBack(attributes.object);
      for (const candidate of registered) {
        // The second round calls only webhooks that were called in the first one.
        if (again && !reinvocation.mustAskAgain(candidate.id)) continue;
        const invocation = await dispatcher.match(candidate, attributes);
        if (invocation === undefined) continue;
        if (await mutate(ctx, dispatcher, invocation, attributes)) {
          reinvocation.changed();
          attributes.wantsAnotherRound = true;
        }
        if (candidate.webhook.reinvocationPolicy === "IfNeeded") reinvocation.requested(candidate.id);
      }
      reinvocation.leave(attributes.object);
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
  const round = attributes.round ?? 0;
  const { webhook, configuration, index } = invocation;
  const place = `round_${round}_index_${index}`;
  let changed = false;
  try {
    await dispatcher.call(invocation, attributes, round, async (answer) => {
      await ctx.turns.next(answer.patch?.length); // a patch of 10 MB is parsed three times: here, in the answer, and to be applied
      const operations = await operationsOf(ctx, answer);
      if (operations.length === 0) return;
      await ctx.turns.next(answer.patch?.length);
      const next = await patched(ctx, dispatcher, invocation, attributes, answer);
      const what = { configuration, webhook: webhook.name, patch: operations, patchType: "JSONPatch" };
      attributes.annotateContent(patchAuditPrefix + place, JSON.stringify(what));
      changed = !semanticEqual(next, attributes.object);
      if (!changed) return;
      replaceContents(attributes.object!, next);
      attributes.changes ??= [];
      attributes.changes.push({ configuration, webhook: webhook.name, paths: pathsOf(operations) });
    });
  } finally {
    attributes.annotate(auditPrefix + place, JSON.stringify({ configuration, webhook: webhook.name, mutated: changed }));
  }
  return changed;
}

const mostPaths = 20;

const pathsOf = (operations: readonly unknown[]): string[] =>
  operations
    .slice(0, mostPaths)
    .map((operation) => String(isJsonObject(operation) ? operation["path"] : undefined).slice(0, 200));

/** Parses the JSON patch. @throws WebhookCallError when it is invalid. */
async function operationsOf(ctx: PluginContext, { patch }: WebhookAnswer): Promise<readonly unknown[]> {
  if (patch === undefined) return [];
  let operations: unknown;
  try {
    operations = await ctx.turns.run(parseLargeJson(patch), patch.length);
  } catch (err) {
    throw new WebhookCallError(`received undecodable patch in webhook response: ${messageOf(err)}`, 503, err);
  }
  if (Array.isArray(operations)) return operations;
  throw new WebhookCallError("received undecodable patch in webhook response: not a list of operations");
}

/** The object after the webhook's patch, in the hub version. @throws StatusError 500. */
async function patched(
  ctx: PluginContext,
  dispatcher: WebhookDispatcher,
  invocation: Invocation,
  attributes: AdmissionAttributes,
  { patch, patchType }: WebhookAnswer,
): Promise<KubeObject> {
  const name = goQuote(invocation.webhook.name);
  if (attributes.object === undefined) {
    const text = `admission webhook ${name} attempted to modify the object, which is not supported for this operation`;
    throw internalError(new Error(text));
  }
  if (patchType !== "JSONPatch") throw new WebhookCallError(`unsupported patch type ${goQuote(patchType)}`);
  const { kind, object: shown } = await dispatcher.shown(invocation, attributes);
  try {
    // The patch applies to the object that was sent, and its result is parsed like a request body.
    const changed = await ctx.turns.run(
      jsonPatchSteps({ ...shown, kind: kind.kind, apiVersion: formatGroupVersion(kind) }, patch!),
      0,
      attributes.signal,
    );
    if (!isJsonObject(changed) || changed["kind"] !== kind.kind || changed["apiVersion"] !== formatGroupVersion(kind)) {
      throw new Error(`admission webhook ${name} attempted to change the kind of the object`);
    }
    changed["metadata"] ??= {};
    const type = scheme.kind(kind);
    // Cast: its kind was compared above; `toHub` checks the metadata and the fields of a custom object.
    const object = type === undefined ? (changed as Unstructured) : decodeParsed(changed, type).object;
    if (!invocation.isResourceItself) return object;
    return await ctx.versions.toHub(object, invocation.target, attributes.object.apiVersion);
  } catch (err) {
    attributes.signal.throwIfAborted();
    throw internalError(err);
  }
}

/** Replaces the contents in place, because others hold the object. Own keys only: user data must not reach the prototype. */
function replaceContents(object: KubeObject, next: KubeObject): void {
  for (const key of Object.keys(object)) Reflect.deleteProperty(object, key);
  for (const [key, value] of Object.entries(next)) {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  }
}
