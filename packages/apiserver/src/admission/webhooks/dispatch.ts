import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";

import type { WebhookClient } from "./client.ts";
import type { CredentialsFor } from "./credentials.ts";
/**
 * Shared by both webhook plugins: which registered webhooks match a write, and calling one of them under its failure
 * policy.
 * Source: k8s.io/apiserver pkg/admission/plugin/webhook/generic/webhook.go, {mutating,validating}/dispatcher.go
 */

import { badRequest, internalError, notFound, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { valuesPerStep } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject, Status } from "@coxswain/apimachinery/objects/meta/types";
import type { MutatingWebhook } from "@coxswain/apimachinery/objects/schema/kinds/admissionregistration/v1";
import type { Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { namespaces as namespacesRef, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { qualifiedNameProblems } from "@coxswain/apimachinery/objects/validation/qualified-name";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { type NamespaceLookup, namespaceLookup } from "../plugins/namespace-lookup.ts";
import { WebhookCallError } from "./caller.ts";
import { newWebhookClient } from "./client.ts";
import { webhookCredentials } from "./credentials.ts";
import { matchingVersion, type ResourceVersion, selectorsMatch, selectorsOf, type WebhookSelectors } from "./matcher.ts";
import { newReview, type Review, type ReviewedObjects, type WebhookAnswer } from "./review.ts";

interface Configuration extends KubeObject {
  webhooks?: MutatingWebhook[];
}

interface RegisteredWebhook {
  readonly webhook: MutatingWebhook;
  readonly selectors: WebhookSelectors;
  readonly configuration: string;
  /** Position among all webhooks, in call order. */
  readonly index: number;
  /** Unique even when webhook names are not. */
  readonly id: string;
}

/** A webhook that matches a write. */
export interface Invocation extends RegisteredWebhook {
  /** The version in which the webhook expects the objects. */
  readonly target: ResourceVersion;
  /** False for subresources that have a separate kind (Scale, Eviction), which need no conversion. */
  readonly isResourceItself: boolean;
}

/** Names in which the two plugins differ. */
interface DispatcherNames {
  readonly configurations: ResourceRef;
  readonly plugin: string;
  /** Value of the metrics label `type`. */
  readonly type: "admit" | "validating";
  readonly failedOpenPrefix: string;
}

/** The webhooks of one of the two admission plugins: which ones a write matches, and their calls. */
export class WebhookDispatcher {
  readonly #options: PluginContext;
  readonly #names: DispatcherNames;
  readonly #type: "admit" | "validating";
  readonly #informer: SharedInformer<Configuration>;
  readonly #serviceInformer: SharedInformer<Service & KubeObject>;
  readonly #namespaces: NamespaceLookup;
  readonly #credentials: CredentialsFor;
  readonly #client: WebhookClient;
  #all: readonly RegisteredWebhook[] | undefined;

  constructor(ctx: PluginContext, names: DispatcherNames) {
    this.#options = ctx;
    this.#names = names;
    const { type } = names;
    this.#type = type;
    this.#informer = ctx.informers.for<Configuration>(names.configurations);
    this.#serviceInformer = ctx.informers.for<Service & KubeObject>(services);
    this.#namespaces = namespaceLookup(ctx.informers, ctx.client);
    this.#credentials = webhookCredentials(ctx.configurationOf(names.plugin), ctx.proxyCertificate);
    this.#client = newWebhookClient(ctx.resolveService, this.#credentials, ctx.turns, ctx.webhookDialers);
    this.#informer.addHandler({ added: () => this.#forget(), updated: () => this.#forget(), deleted: () => this.#forget() });
  }

  get synced(): boolean {
    return this.#informer.synced && this.#serviceInformer.synced && this.#namespaces.synced;
  }

  /** All webhooks, sorted by configuration name, then in the order of the configuration. */
  registered(): readonly RegisteredWebhook[] {
    this.#all ??= registeredIn(this.#informer.lister.list());
    return this.#all;
  }

  /** @returns undefined when the webhook does not match the write in its current state. */
  async match(registered: RegisteredWebhook, attributes: AdmissionAttributes): Promise<Invocation | undefined> {
    const equivalents = this.#options.versions.of(attributes.resource);
    const target = matchingVersion(registered.webhook, attributes, equivalents);
    if (target === undefined) return undefined;
    const labels = registered.selectors.namespace.empty ? undefined : await this.#namespaceLabels(attributes);
    if (!selectorsMatch(registered.selectors, attributes, labels)) return undefined;
    const { group, version } = attributes.resource;
    const own = equivalents.find((candidate) => candidate.group === group && candidate.version === version);
    return { ...registered, target, isResourceItself: own?.kind === attributes.kind.kind };
  }

  /** Objects converted to the webhook's version; those of the attributes stay in the hub version, unmodified. */
  shown(invocation: Invocation, attributes: AdmissionAttributes): Promise<ReviewedObjects> {
    return shownObjects(this.#options, invocation, attributes);
  }

  /**
   * @param use processes the response; a WebhookCallError thrown by it is subject to the failure policy too.
   * @returns undefined when the call failed and the failure policy is Ignore.
   * @throws StatusError when the webhook rejects the request, or fails with failure policy Fail.
   */
  async call<T>(
    invocation: Invocation,
    attributes: AdmissionAttributes,
    round: number,
    use: (answer: WebhookAnswer) => Promise<T> | T,
  ): Promise<T | undefined> {
    const { webhook, index } = invocation;
    const { operation, signal } = attributes;
    const startedAt = performance.now();
    const observe = (code: number, rejected: boolean, errorType?: string): void => {
      const tookMs = performance.now() - startedAt;
      attributes.webhookTook?.(this.#type, tookMs);
      const seconds = tookMs / 1000;
      this.#options.webhookMetrics.called(webhook.name, this.#type, operation, { seconds, code, rejected });
      if (errorType !== undefined) this.#options.webhookMetrics.rejected(webhook.name, this.#type, operation, errorType, code);
    };
    try {
      const result = await this.#call(invocation, attributes, use, () => shownObjects(this.#options, invocation, attributes));
      observe(200, false);
      return result;
    } catch (err) {
      if (err instanceof Rejection) {
        observe(err.status.code, true, "no_error");
        throw err.status;
      }
      if (!(err instanceof WebhookCallError)) {
        observe(0, true, "apiserver_internal_error");
        throw err;
      }
      const isIgnored = webhook.failurePolicy === "Ignore";
      observe(err.code, !isIgnored, isIgnored ? undefined : "calling_webhook_error");
      // The request was cancelled: the failure policy must not admit it.
      signal.throwIfAborted();
      const text = `failed calling webhook ${goQuote(webhook.name)}: ${err.message}`;
      this.#options.log.warn(`Failed calling webhook, failing ${isIgnored ? "open" : "closed"}`, {
        webhook: webhook.name,
        err: text,
      });
      if (!isIgnored) throw internalError(new Error(text));
      attributes.annotate(`${this.#names.failedOpenPrefix}round_${round}_index_${index}`, webhook.name);
      return undefined;
    }
  }

  #forget(): void {
    this.#all = undefined;
  }

  async #namespaceLabels(attributes: AdmissionAttributes): Promise<Readonly<Record<string, string>> | undefined> {
    const { resource, subresource, operation, namespace, object } = attributes;
    const isNamespace = resource.group === "" && resource.resource === "namespaces";
    // For writes to a namespace itself, the selector is evaluated against the new labels.
    if (isNamespace && subresource === "" && (operation === "CREATE" || operation === "UPDATE"))
      return object?.metadata.labels ?? {};
    if (namespace === "") return undefined;
    const found = await this.#namespaces.get(namespace);
    if (found === undefined) throw notFound(namespacesRef, namespace);
    return found.metadata.labels ?? {};
  }

  async #call<T>(
    invocation: Invocation,
    attributes: AdmissionAttributes,
    use: (answer: WebhookAnswer) => Promise<T> | T,
    shown: () => Promise<ReviewedObjects>,
  ): Promise<T> {
    const { webhook } = invocation;
    if (attributes.dryRun && webhook.sideEffects !== "None" && webhook.sideEffects !== "NoneOnDryRun") {
      throw badRequest(`admission webhook ${goQuote(webhook.name)} does not support dry run`);
    }
    const { turns } = this.#options;
    await turns.next();
    const objects = await shown();
    await turns.next();
    const answer = await this.#client.review(
      webhook,
      await turns.run(reviewOf(webhook, attributes, objects)),
      this.#type === "admit",
      attributes.signal,
    );
    await turns.run(annotate(webhook.name, attributes, answer));
    for (const warning of answer.warnings) attributes.warn(warning);
    if (!answer.allowed) throw new Rejection(denied(webhook.name, answer.status));
    return use(answer);
  }
}

/** The webhook rejected the request; not subject to the failure policy. */
class Rejection extends Error {
  readonly status: StatusError;
  constructor(status: StatusError) {
    super(status.message);
    this.status = status;
  }
}

function registeredIn(configurations: readonly Configuration[]): RegisteredWebhook[] {
  const nameOf = ({ metadata }: Configuration): string => metadata.name ?? "";
  const inOrder = configurations.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const seen = new Map<string, number>();
  return inOrder
    .flatMap((configuration) =>
      (configuration.webhooks ?? []).map((webhook) => ({ webhook, configuration: nameOf(configuration) })),
    )
    .map(({ webhook, configuration }, index) => {
      const name = `${configuration}/${webhook.name}`;
      const nth = seen.get(name) ?? 0;
      seen.set(name, nth + 1);
      return { webhook, selectors: selectorsOf(webhook), configuration, index, id: `${name}/${nth}` };
    });
}

async function shownObjects(
  ctx: PluginContext,
  { target, isResourceItself }: Invocation,
  attributes: AdmissionAttributes,
): Promise<ReviewedObjects> {
  const { object, oldObject, kind } = attributes;
  if (!isResourceItself) return { kind, resource: target, object, oldObject };
  const convert = async (stored: KubeObject | undefined): Promise<KubeObject | undefined> =>
    stored === undefined ? undefined : ctx.versions.fromHub(stored, target);
  return { kind: target, resource: target, object: await convert(object), oldObject: await convert(oldObject) };
}

function* reviewOf(webhook: MutatingWebhook, attributes: AdmissionAttributes, shown: ReviewedObjects): Steps<Review> {
  try {
    return yield* newReview(webhook.admissionReviewVersions ?? [], attributes, shown);
  } catch (err) {
    throw new WebhookCallError(`could not create admission objects: ${messageOf(err)}`, 400, err);
  }
}

/** Adds `<webhook>/<key>` annotations; keys that are not qualified names are dropped. */
function* annotate(webhook: string, attributes: AdmissionAttributes, { auditAnnotations }: WebhookAnswer): Steps<void> {
  for (const [i, [name, value]] of Object.entries(auditAnnotations).entries()) {
    if (i % valuesPerStep === valuesPerStep - 1) yield;
    const key = `${webhook}/${name}`;
    if (typeof value === "string" && qualifiedNameProblems(key).length === 0) attributes.annotate(key, value);
  }
}

/** A rejection names the webhook and always has an error code. Source: webhook/errors/statuserror.go */
function denied(webhookName: string, status: Status | undefined): StatusError {
  const by = `admission webhook ${goQuote(webhookName)} denied the request`;
  const message = status?.message
    ? `${by}: ${status.message}`
    : status?.reason
      ? `${by}: ${status.reason}`
      : `${by} without explanation`;
  const code = status?.code !== undefined && status.code >= 400 ? status.code : 400;
  return new StatusError({ ...status, metadata: {}, status: "Failure", message, code });
}
