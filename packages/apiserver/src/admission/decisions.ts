import { type ObjectRef, objectRef } from "@coxswain/apimachinery/decisions/decision";
import { type DecisionLog, descriptionOf } from "@coxswain/apimachinery/decisions/decision-log";
import { outcomeOfError } from "@coxswain/apimachinery/decisions/outcome-of-error";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import { parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { controllerOf } from "@coxswain/apimachinery/objects/meta/owner-references";
import {
  limitRanges,
  mutatingWebhookConfigurations,
  podSecurityPolicies,
  resourceQuotas,
  validatingWebhookConfigurations,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { AdmissionAttributes } from "./plugin.ts";
import type { ObjectVersions } from "./plugin-context.ts";

/** Resources that a plugin's refusals quote: users who may not read them get the reason without the text. */
const subjectsOf: Readonly<Record<string, readonly ResourceRef[]>> = {
  ResourceQuota: [resourceQuotas],
  LimitRanger: [limitRanges],
  PodSecurityPolicy: [podSecurityPolicies],
  MutatingAdmissionWebhook: [mutatingWebhookConfigurations],
  ValidatingAdmissionWebhook: [validatingWebhookConfigurations],
};

/** Records, for explanations, the last refusal of each plugin with the webhook and its error, and which webhooks changed which object. */
export class AdmissionDecisions {
  readonly #log: DecisionLog;
  readonly #versions: Pick<ObjectVersions, "ofKind">;
  #hasRefused = false;

  constructor(log: DecisionLog, versions: Pick<ObjectVersions, "ofKind">) {
    this.#log = log;
    this.#versions = versions;
  }

  refused(plugin: string, attributes: AdmissionAttributes, err: unknown): void {
    const ref = this.#refusedOf(attributes);
    if (ref === undefined || attributes.signal.aborted) return;
    this.#hasRefused = true;
    const outcome = outcomeOfError(err);
    // Copied, so that the recorded decision does not keep the object in memory.
    const { operation, subresource, resource, namespace } = attributes;
    const { description, reason } = outcome;
    this.#log.record(ref, `admission/${plugin}`, {
      verdict: "refused",
      reason,
      sizeBytes: 1000,
      description: () => ({
        ...descriptionOf(description),
        details: { operation, resource: `${resource.resource}${subresource === "" ? "" : `/${subresource}`}` },
        related: (subjectsOf[plugin] ?? []).map((ref) => refTo(ref, namespace)),
      }),
    });
  }

  /** All plugins have admitted the object: forgets an earlier refusal, and records which webhooks have changed the object. */
  admitted(attributes: AdmissionAttributes): void {
    const { changes, dryRun, operation } = attributes;
    if (changes === undefined && (!this.#hasRefused || this.#log.entries === 0)) return;
    if (this.#hasRefused) {
      const refused = this.#refusedOf(attributes);
      if (refused !== undefined) this.#log.forgetObject(refused);
    }
    const changed = objectOf(attributes);
    if (changed === undefined || changes === undefined || dryRun) return;
    this.#log.record(changed, "admission/MutatingAdmissionWebhook", {
      verdict: "done",
      reason: "ChangedByWebhook",
      description: {
        summary: `changed by the webhook ${[...new Set(changes.map(({ webhook }) => webhook))].join(", ")}`,
        plain: "changed by a webhook",
        related: changes.map(({ configuration }) => refTo(mutatingWebhookConfigurations, "", configuration)),
        details: { operation, changes },
      },
    });
  }

  /**
   * The object that the refusal is recorded for. When a controller was refused the creation of an object, it is the controlling owner,
   * which exists, unlike the object, and is what users ask about.
   */
  #refusedOf(attributes: AdmissionAttributes): ObjectRef | undefined {
    const { operation, namespace, object } = attributes;
    const owner = operation === "CREATE" && object?.metadata ? controllerOf({ metadata: object.metadata }) : undefined;
    const version = owner && parseGroupVersion(owner.apiVersion);
    const [served] = owner === undefined || version === undefined ? [] : this.#versions.ofKind({ ...version, kind: owner.kind });
    if (owner === undefined || version === undefined || served === undefined) return objectOf(attributes);
    return {
      ...{ group: version.group, resource: served.resource, kind: owner.kind, name: owner.name, uid: owner.uid },
      namespace: served.namespaced ? namespace : "",
    };
  }
}

/** @returns undefined for an object without a name yet */
function objectOf({ kind, resource, namespace, name, object, oldObject }: AdmissionAttributes): ObjectRef | undefined {
  const known = name || object?.metadata?.name;
  if (!known) return undefined;
  const uid = (oldObject ?? object)?.metadata?.uid ?? "";
  return { group: resource.group, resource: resource.resource, kind: kind.kind, namespace, name: known, uid };
}

/** @param name default: any object of the kind */
const refTo = (ref: ResourceRef, namespace: string, name = ""): ObjectRef =>
  objectRef(ref, { metadata: { name, ...(ref.namespaced && { namespace }) } });
