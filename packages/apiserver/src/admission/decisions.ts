import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import type { DecisionLog } from "@coxswain/apimachinery/decisions/decision-log";
import { outcomeOfError } from "@coxswain/apimachinery/decisions/outcome-of-error";
import { parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { controllerOf } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { AdmissionAttributes } from "./plugin.ts";
import type { ObjectVersions } from "./plugin-context.ts";

/** Keeps which plugin refused what last, with the webhook and its error where there is one. */
export class AdmissionDecisions {
  readonly #log: DecisionLog;
  readonly #versions: Pick<ObjectVersions, "ofKind">;
  #hasRefused = false;

  constructor(log: DecisionLog, versions: Pick<ObjectVersions, "ofKind">) {
    this.#log = log;
    this.#versions = versions;
  }

  refused(plugin: string, attributes: AdmissionAttributes, err: unknown): void {
    const ref = this.#subjectOf(attributes);
    if (ref === undefined || attributes.signal.aborted) return;
    this.#hasRefused = true;
    const outcome = outcomeOfError(err);
    const description = typeof outcome.description === "function" ? outcome.description() : outcome.description;
    const { operation, subresource, resource, user } = attributes;
    const what = `${resource.resource}${subresource === "" ? "" : `/${subresource}`}`;
    this.#log.record(ref, `admission/${plugin}`, {
      ...outcome,
      verdict: "refused",
      description: {
        ...(typeof description === "string" ? { summary: description } : description),
        details: { operation, resource: what, user: user.name },
      },
    });
  }

  /** All plugins have admitted the object. */
  admitted(attributes: AdmissionAttributes): void {
    if (!this.#hasRefused || this.#log.entries === 0) return;
    const ref = this.#subjectOf(attributes);
    if (ref !== undefined) this.#log.forgetObject(ref);
  }

  /** The object; of one that has no name yet, its controller. */
  #subjectOf({ kind, resource, namespace, name, object, oldObject }: AdmissionAttributes): ObjectRef | undefined {
    const known = name || object?.metadata?.name;
    if (known) {
      const uid = (oldObject ?? object)?.metadata?.uid ?? "";
      return { group: resource.group, resource: resource.resource, kind: kind.kind, namespace, name: known, uid };
    }
    const owner = object?.metadata && controllerOf({ metadata: object.metadata });
    const version = owner && parseGroupVersion(owner.apiVersion);
    if (owner === undefined || version === undefined) return undefined;
    const [served] = this.#versions.ofKind({ ...version, kind: owner.kind });
    if (served === undefined) return undefined;
    return {
      ...{ group: version.group, resource: served.resource, kind: owner.kind, name: owner.name, uid: owner.uid },
      namespace: served.namespaced ? namespace : "",
    };
  }
}
