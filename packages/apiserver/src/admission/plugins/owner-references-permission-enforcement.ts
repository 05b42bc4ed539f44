/**
 * Changing ownerReferences of an existing object requires permission to delete it, because the garbage collector could then
 * delete it. Setting blockOwnerDeletion requires permission to update the owner's finalizers.
 * Source: plugin/pkg/admission/gc/gc_admission.go
 */
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { OwnerReference } from "@coxswain/apimachinery/objects/meta/types";
import type { Decision } from "../../authorization/authorizer.ts";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";

export function ownerReferencesPermissionEnforcement(ctx: PluginContext): AdmissionPlugin {
  return {
    name: "OwnerReferencesPermissionEnforcement",
    handles: (operation) => operation === "CREATE" || operation === "UPDATE",
    async validate(attributes) {
      const { resource, subresource } = attributes;
      // Old kubelets corrupt the references in status updates; the status strategy ignores them anyway.
      if (resource.group === "" && resource.resource === "pods" && subresource === "status") return;
      if (!changesOwners(attributes)) return;
      if (attributes.operation === "UPDATE") await checkDeletion(ctx, attributes);
      for (const reference of newlyBlocking(attributes)) await checkFinalizers(ctx, attributes, reference);
    },
  };
}

async function checkDeletion(ctx: PluginContext, attributes: AdmissionAttributes): Promise<void> {
  const { user, namespace, name, resource, subresource } = attributes;
  const deletion = await ctx.authorize({
    user,
    verb: "delete",
    isResourceRequest: true,
    namespace,
    group: resource.group,
    version: resource.version,
    resource: resource.resource,
    subresource,
    name,
    path: "",
  });
  if (deletion.decision === "allow") return;
  throw refuse(attributes, `cannot set an ownerRef on a resource you can't delete: ${whyNot(deletion)}`);
}

async function checkFinalizers(ctx: PluginContext, attributes: AdmissionAttributes, owner: OwnerReference): Promise<void> {
  const { group, version } = parseGroupVersion(owner.apiVersion) ?? { group: "", version: "" };
  const mappings = ctx.versions.ofKind({ group, version, kind: owner.kind });
  if (mappings.length === 0) {
    throw refuse(
      attributes,
      `cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion ${owner.apiVersion} Kind ${owner.kind}: no matches for kind ${JSON.stringify(owner.kind)} in version ${JSON.stringify(owner.apiVersion)}`,
    );
  }
  for (const { resource, namespaced } of mappings) {
    const decision = await ctx.authorize({
      user: attributes.user,
      verb: "update",
      isResourceRequest: true,
      // A namespaced owner is in the namespace of the object.
      namespace: namespaced ? attributes.namespace : "",
      group,
      version,
      resource,
      subresource: "finalizers",
      name: owner.name,
      path: "",
    });
    if (decision.decision === "allow") continue;
    throw refuse(
      attributes,
      `cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: ${whyNot(decision)}`,
    );
  }
}

function whyNot({ reason = "", error }: Decision): string {
  return `${reason}, ${error === undefined ? "<nil>" : error.message}`;
}

function changesOwners({ object, oldObject }: AdmissionAttributes): boolean {
  const [next, before] = [object?.metadata?.ownerReferences ?? [], oldObject?.metadata?.ownerReferences ?? []];
  return !semanticEqual(next, before);
}

function newlyBlocking({ object, oldObject }: AdmissionAttributes): OwnerReference[] {
  const before = new Map((oldObject?.metadata?.ownerReferences ?? []).map((reference) => [reference.uid, reference]));
  return (object?.metadata?.ownerReferences ?? []).filter(
    (reference) => reference.blockOwnerDeletion === true && before.get(reference.uid)?.blockOwnerDeletion !== true,
  );
}
