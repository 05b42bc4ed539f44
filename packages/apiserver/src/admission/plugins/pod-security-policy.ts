/**
 * Requires that every pod satisfies a PodSecurityPolicy that its creator or its service account may `use`. Policies that
 * accept the pod unchanged are preferred to mutating ones; among those the first by name wins. Without any policy all pods
 * are rejected.
 * Source: plugin/pkg/admission/security/podsecuritypolicy/admission.go
 */
import { type FieldError, formatFieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import { deepClone, semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { podSecurityPolicies } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { UserInfo } from "../../request/context.ts";
import { serviceAccountGroups, serviceAccountUsername } from "../../request/user-names.ts";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { mutatePod, type Policy } from "../pod-security-policy/mutate.ts";
import { podErrors } from "../pod-security-policy/validate.ts";
import type { PodObject } from "./pod-of.ts";

const annotation = "kubernetes.io/psp";
const auditPrefix = "podsecuritypolicy.policy.k8s.io/";

/** The part of the pod that a policy may mutate in this request. */
type Changes = "everything" | "ephemeral containers" | "nothing";

interface Found {
  readonly pod: PodObject;
  readonly policy: string;
}

export function podSecurityPolicy(ctx: PluginContext): AdmissionPlugin<PodObject> {
  const informer = ctx.informers.for<Policy>(podSecurityPolicies);

  /** @returns the accepted pod, or the errors of all usable policies when none of them accepts it. */
  const find = async (
    attributes: AdmissionAttributes<PodObject>,
    changes: Changes,
    hint: string,
  ): Promise<Found | FieldError[]> => {
    const pod = attributes.object!;
    const policies = informer.lister.list().toSorted(byName(changes === "nothing" ? hint : ""));
    if (policies.length === 0) throw refuse(attributes, "PodSecurityPolicy: no providers available to validate pod request");
    let changed: Found | undefined;
    const errors: FieldError[] = [];
    for (const policy of policies) {
      const name = policy.metadata.name!;
      const candidate = deepClone(pod);
      mutatePod(policy, candidate);
      const wrong = podErrors(policy, candidate);
      if (wrong.length > 0) {
        if (await mayUse(ctx, attributes, pod, name)) errors.push(...wrong);
        continue;
      }
      const isSame = semanticEqual(pod, candidate);
      if (!isSame && !isAllowed(changes, pod, candidate)) continue;
      if (!isSame && changed !== undefined) continue;
      if (!(await mayUse(ctx, attributes, pod, name))) continue;
      if (isSame) return { pod: candidate, policy: name };
      changed = { pod: candidate, policy: name };
    }
    return changed ?? errors;
  };

  return {
    name: "PodSecurityPolicy",
    handles: (operation) => operation === "CREATE" || operation === "UPDATE",
    ready: () => informer.synced,
    async admit(attributes) {
      if (!isConcerned(attributes)) return;
      const changes = changesOf(attributes);
      // Updates of `pods` are validated in the validating phase only.
      if (changes === "nothing") return;
      const found = await find(attributes, changes, "");
      if (Array.isArray(found)) throw refuse(attributes, `PodSecurityPolicy: unable to admit pod: ${listed(found)}`);
      const pod = attributes.object!;
      pod.metadata = { ...found.pod.metadata, annotations: { ...found.pod.metadata.annotations, [annotation]: found.policy } };
      pod.spec = found.pod.spec;
      attributes.annotate(`${auditPrefix}admit-policy`, found.policy);
    },
    async validate(attributes) {
      if (!isConcerned(attributes)) return;
      const hint = attributes.object!.metadata.annotations?.[annotation] ?? "";
      const found = await find(attributes, "nothing", hint);
      if (Array.isArray(found)) throw refuse(attributes, `PodSecurityPolicy: unable to validate pod: ${listed(found)}`);
      attributes.annotate(`${auditPrefix}validate-policy`, found.policy);
    },
  };
}

function isConcerned({ resource, subresource, operation, object, oldObject }: AdmissionAttributes): boolean {
  if (resource.group !== "" || resource.resource !== "pods") return false;
  if (subresource !== "" && subresource !== "ephemeralcontainers") return false;
  // The garbage collector sends such updates, and is allowed to delete the pod anyway.
  return operation !== "UPDATE" || !changesOwnershipOnly(object!, oldObject!);
}

function changesOwnershipOnly(next: KubeObject, before: KubeObject): boolean {
  const { ownerReferences, finalizers, managedFields } = before.metadata;
  return semanticEqual({ ...next, metadata: { ...next.metadata, ownerReferences, finalizers, managedFields } }, before);
}

function changesOf({ operation, subresource }: AdmissionAttributes): Changes {
  if (operation === "CREATE") return "everything";
  return subresource === "ephemeralcontainers" ? "ephemeral containers" : "nothing";
}

function isAllowed(changes: Changes, pod: PodObject, candidate: PodObject): boolean {
  if (changes !== "ephemeral containers") return changes === "everything";
  const { ephemeralContainers } = candidate.spec;
  return semanticEqual({ ...pod, spec: { ...pod.spec, ephemeralContainers } }, candidate);
}

function byName(first: string): (a: Policy, b: Policy) => number {
  return (a, b) => {
    const [left = "", right = ""] = [a.metadata.name, b.metadata.name];
    if (left === first || right === first) return left === first ? -1 : 1;
    return left < right ? -1 : 1;
  };
}

/** Checks the service account before the user, as it is the common case. */
async function mayUse(ctx: PluginContext, attributes: AdmissionAttributes, pod: PodObject, policy: string): Promise<boolean> {
  const { namespace, user } = attributes;
  const account = pod.spec.serviceAccountName;
  const users: UserInfo[] = account
    ? [{ name: serviceAccountUsername(namespace, account), groups: serviceAccountGroups(namespace) }, user]
    : [user];
  for (const candidate of users) {
    // PodSecurityPolicies moved from `extensions`; roles may still grant `use` in the old group.
    for (const group of ["policy", "extensions"]) {
      const { decision } = await ctx.authorize({
        user: candidate,
        verb: "use",
        isResourceRequest: true,
        namespace,
        group,
        version: "",
        resource: "podsecuritypolicies",
        subresource: "",
        name: policy,
        path: "",
      });
      if (decision === "allow") return true;
    }
  }
  return false;
}

/** Go's formatting of an error list. */
function listed(errors: readonly FieldError[]): string {
  return `[${errors.map(formatFieldError).join(" ")}]`;
}
