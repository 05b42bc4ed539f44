/**
 * What both webhook plugins share: which of the registered webhooks concern a write, and how one of them is asked under
 * its failure policy.
 * Source: k8s.io/apiserver pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go, errors/statuserror.go
 */

import { badRequest, internalError, StatusError } from "@coxswain/apimachinery/errors/status-error";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { ResourceRef } from "@coxswain/apimachinery/meta/group-version";
import type { KubeObject, Status } from "@coxswain/apimachinery/meta/types";
import type { MutatingWebhook } from "@coxswain/apimachinery/schema/kinds/admissionregistration/v1";
import { services } from "@coxswain/apimachinery/schema/kinds/resources";
import type { PluginContext } from "./catalogue.ts";
import type { AdmissionAttributes } from "./plugin.ts";
import { namespaceLookup } from "./plugins/namespace-lookup.ts";
import { newReview, newWebhookClient, type WebhookAnswer } from "./webhook-client.ts";
import { matchingVersion, type ResourceVersion, selectorsMatch } from "./webhook-matcher.ts";

interface Configuration extends KubeObject {
  webhooks?: MutatingWebhook[];
}

export interface Invocation {
  readonly webhook: MutatingWebhook;
  /** `configuration/webhook`, unique. */
  readonly id: string;
  /** The version in which the webhook wants the objects. */
  readonly target: ResourceVersion;
}

export interface WebhookDispatcher {
  readonly synced: boolean;
  /** In the order of the configurations' names. */
  concerned(attributes: AdmissionAttributes): Promise<Invocation[]>;
  /**
   * Objects as the webhook wants them. The attributes' own are in the hub version and stay as they are.
   */
  objectsFor(
    attributes: AdmissionAttributes,
    target: ResourceVersion,
  ): { object: KubeObject | undefined; oldObject: KubeObject | undefined };
  /** @returns undefined when it failed and its policy is to ignore that. @throws StatusError when it refuses, or fails. */
  call(invocation: Invocation, attributes: AdmissionAttributes, expectsPatch: boolean): Promise<WebhookAnswer | undefined>;
}

export function newWebhookDispatcher(
  ctx: PluginContext,
  configurations: ResourceRef,
  type: "admit" | "validating",
): WebhookDispatcher {
  const informer: SharedInformer<Configuration> = ctx.informers.for<Configuration>(configurations);
  const serviceInformer = ctx.informers.for<KubeObject & { spec?: { clusterIP?: string; type?: string } }>(services);
  const namespaces = namespaceLookup(ctx.informers, ctx.client);
  const client = newWebhookClient((namespace, name) => {
    const service = serviceInformer.lister.get(`${namespace}/${name}`);
    if (service === undefined) throw new Error(`service ${JSON.stringify(name)} not found`);
    const address = service.spec?.clusterIP;
    if (address === undefined || address === "" || address === "None")
      throw new Error(`service ${namespace}/${name} has no cluster IP`);
    return { address };
  });

  const namespaceLabels = async (attributes: AdmissionAttributes): Promise<Readonly<Record<string, string>> | undefined> => {
    const { resource, subresource, operation, namespace, object } = attributes;
    const isNamespace = resource.group === "" && resource.resource === "namespaces";
    // A namespace that is written is judged by what it is about to be.
    if (isNamespace && subresource === "" && (operation === "CREATE" || operation === "UPDATE"))
      return object?.metadata.labels ?? {};
    if (namespace === "") return undefined;
    return (await namespaces.get(namespace))?.metadata.labels ?? {};
  };

  return {
    get synced() {
      return informer.synced && serviceInformer.synced && namespaces.synced;
    },
    async concerned(attributes) {
      const all = informer.lister.list();
      if (all.length === 0) return [];
      const equivalents = ctx.versions.of(attributes.resource);
      const found: Invocation[] = [];
      let labels: Readonly<Record<string, string>> | undefined;
      let asked = false;
      for (const { metadata, webhooks } of all.toSorted((a, b) => ((a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1))) {
        for (const webhook of webhooks ?? []) {
          const target = matchingVersion(webhook, attributes, equivalents);
          if (target === undefined) continue;
          if (!asked) {
            labels = await namespaceLabels(attributes);
            asked = true;
          }
          if (selectorsMatch(webhook, attributes, labels))
            found.push({ webhook, id: `${metadata.name}/${webhook.name}`, target });
        }
      }
      return found;
    },
    objectsFor(attributes, target) {
      const convert = (object: KubeObject | undefined): KubeObject | undefined =>
        object === undefined || attributes.subresource !== "" ? object : ctx.versions.fromHub(object, target);
      return { object: convert(attributes.object), oldObject: convert(attributes.oldObject) };
    },
    async call(invocation, attributes, expectsPatch) {
      const { webhook, target } = invocation;
      if (attributes.dryRun && webhook.sideEffects !== "None" && webhook.sideEffects !== "NoneOnDryRun") {
        throw badRequest(`admission webhook ${JSON.stringify(webhook.name)} does not support dry run`);
      }
      const startedAt = performance.now();
      let answer: WebhookAnswer;
      try {
        const review = newReview(webhook, attributes, target, this.objectsFor(attributes, target));
        answer = await client.review(webhook, review, expectsPatch, attributes.signal);
      } catch (err) {
        return failed(ctx, webhook, attributes, err as Error);
      } finally {
        ctx.webhookMetrics.called(webhook.name, type, attributes.operation, (performance.now() - startedAt) / 1000);
      }
      for (const warning of answer.warnings) attributes.warn(warning);
      if (!answer.allowed) {
        ctx.webhookMetrics.rejected(webhook.name, type, attributes.operation);
        throw denied(webhook.name, answer.status);
      }
      return answer;
    },
  };
}

function failed(ctx: PluginContext, webhook: MutatingWebhook, attributes: AdmissionAttributes, err: Error): undefined {
  if (webhook.failurePolicy === "Ignore") {
    ctx.log.warn("Failed calling webhook, failing open", { webhook: webhook.name, err: err.message });
    return undefined;
  }
  attributes.signal.throwIfAborted();
  throw internalError(new Error(`failed calling webhook ${JSON.stringify(webhook.name)}: ${err.message}`));
}

/** A refusal always has a code of an error and says which webhook it was. */
export function denied(webhookName: string, status: Status | undefined): StatusError {
  const by = `admission webhook ${JSON.stringify(webhookName)} denied the request`;
  const message = status?.message
    ? `${by}: ${status.message}`
    : status?.reason
      ? `${by}: ${status.reason}`
      : `${by} without explanation`;
  const code = status?.code !== undefined && status.code >= 400 ? status.code : 400;
  return new StatusError({ ...status, metadata: {}, status: "Failure", message, code });
}
