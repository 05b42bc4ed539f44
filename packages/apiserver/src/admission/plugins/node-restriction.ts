/**
 * Restricts kubelets to their own Node object and to pods bound to it. Complements the Node authorizer, which does not see
 * request bodies.
 * Source: plugin/pkg/admission/noderestriction/admission.go
 */
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Node, PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { mirrorPodAnnotation, podReferences, type ReferenceKind } from "../../authorization/pod-references.ts";
import { nodesGroup, nodeUserPrefix } from "../../request/user-names.ts";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { isOn } from "./pod-of.ts";

export function nodeRestriction(ctx: PluginContext): AdmissionPlugin {
  const podInformer = ctx.informers.for<Pod>(pods);
  const nodeInformer = ctx.informers.for<Node>(nodes);

  const podNamed: FindPod = async (namespace, name) =>
    podInformer.lister.get(`${namespace}/${name}`) ??
    (await ctx.client.get<Pod>(pods, { namespace, name }).catch((err: unknown) => {
      throw isNotFound(err) ? notFound({ group: "", resource: "pod" }, name) : err;
    }));

  return {
    name: "NodeRestriction",
    handles: (operation) => operation !== "CONNECT",
    ready: () => podInformer.synced && nodeInformer.synced,
    // In the mutating phase, as upstream: permission errors are reported before validation errors.
    async admit(attributes) {
      const { user } = attributes;
      if (!user.name.startsWith(nodeUserPrefix) || !user.groups.includes(nodesGroup)) return;
      const node = user.name.slice(nodeUserPrefix.length);
      if (node === "") throw refuse(attributes, `could not determine node from user ${JSON.stringify(user.name)}`);
      if (isOn<Pod>(attributes, "pods")) return admitPods(attributes, node, nodeInformer.lister.get(node), podNamed);
      if (isOn<Node>(attributes, "nodes")) return admitNode(attributes, node);
      if (isOn<PersistentVolumeClaim>(attributes, "persistentvolumeclaims")) return admitClaimStatus(attributes, node);
      if (isOn<TokenRequest>(attributes, "serviceaccounts")) return admitToken(attributes, node, podNamed);
      if (isOn(attributes, "leases.coordination.k8s.io")) return admitLease(attributes, node);
      if (isOn(attributes, "csinodes.storage.k8s.io")) return admitCsiNode(attributes, node);
    },
  };
}

/** @throws NotFound */
type FindPod = (namespace: string, name: string) => Promise<Pod>;

async function admitPods(
  attributes: AdmissionAttributes<Pod>,
  node: string,
  nodeObject: Node | undefined,
  find: FindPod,
): Promise<void> {
  switch (attributes.subresource) {
    case "":
      if (attributes.operation === "CREATE") return admitPodCreate(attributes, node, nodeObject);
      if (attributes.operation === "DELETE") return admitPodDelete(attributes, node, find);
      throw refuse(
        attributes,
        `unexpected operation ${JSON.stringify(attributes.operation)}, node ${JSON.stringify(node)} can only create and delete mirror pods`,
      );
    case "status":
      return admitPodStatus(attributes, node);
    case "eviction":
      return admitPodEviction(attributes, node, find);
    default:
      throw refuse(
        attributes,
        `unexpected pod subresource ${JSON.stringify(attributes.subresource)}, only 'status' and 'eviction' are allowed`,
      );
  }
}

function admitPodCreate(attributes: AdmissionAttributes<Pod>, node: string, nodeObject: Node | undefined): void {
  const pod = attributes.object!;
  const quoted = JSON.stringify(node);
  const { annotations } = pod.metadata;
  if (annotations === undefined || !Object.hasOwn(annotations, mirrorPodAnnotation)) {
    throw refuse(
      attributes,
      `pod does not have ${JSON.stringify(mirrorPodAnnotation)} annotation, node ${quoted} can only create mirror pods`,
    );
  }
  if (pod.spec?.nodeName !== node)
    throw refuse(attributes, `node ${quoted} can only create pods with spec.nodeName set to itself`);
  const owners = pod.metadata.ownerReferences ?? [];
  if (owners.length > 1)
    throw refuse(attributes, `node ${quoted} can only create pods with a single owner reference set to itself`);
  const [owner] = owners;
  if (owner === undefined) throw refuse(attributes, `node ${quoted} can only create pods with an owner reference set to itself`);
  if (owner.apiVersion !== "v1" || owner.kind !== "Node" || owner.name !== node) {
    throw refuse(attributes, `node ${quoted} can only create pods with an owner reference set to itself`);
  }
  if (owner.controller !== true)
    throw refuse(attributes, `node ${quoted} can only create pods with a controller owner reference set to itself`);
  if (owner.blockOwnerDeletion === true)
    throw refuse(attributes, `node ${quoted} must not set blockOwnerDeletion on an owner reference`);
  if (nodeObject === undefined) throw notFound({ group: "", resource: "node" }, node);
  if (owner.uid !== nodeObject.metadata.uid) {
    throw refuse(attributes, `node ${quoted} UID mismatch: expected ${owner.uid} got ${nodeObject.metadata.uid}`);
  }
  if (pod.spec.serviceAccountName)
    throw refuse(attributes, `node ${quoted} can not create pods that reference a service account`);
  const { [mirrorPodAnnotation]: _, ...others } = annotations;
  const references = [...podReferences({ ...pod, metadata: { ...pod.metadata, annotations: others } })];
  for (const kind of ["secrets", "configmaps", "persistentvolumeclaims"] satisfies ReferenceKind[]) {
    if (references.some((reference) => reference.startsWith(`${kind}/`)))
      throw refuse(attributes, `node ${quoted} can not create pods that reference ${kind}`);
  }
}

async function admitPodDelete(attributes: AdmissionAttributes<Pod>, node: string, find: FindPod): Promise<void> {
  const pod = attributes.oldObject ?? (await find(attributes.namespace, attributes.name));
  if (pod.spec?.nodeName !== node) {
    throw refuse(attributes, `node ${JSON.stringify(node)} can only delete pods with spec.nodeName set to itself`);
  }
}

function admitPodStatus(attributes: AdmissionAttributes<Pod>, node: string): void {
  if (attributes.operation !== "UPDATE") throw refuse(attributes, `unexpected operation ${JSON.stringify(attributes.operation)}`);
  const [pod, before] = [attributes.object!, attributes.oldObject!];
  if (before.spec?.nodeName !== node) {
    throw refuse(attributes, `node ${JSON.stringify(node)} can only update pod status for pods with spec.nodeName set to itself`);
  }
  if (!semanticEqual(before.metadata.labels, pod.metadata.labels)) {
    throw refuse(attributes, `node ${JSON.stringify(node)} cannot update labels through pod status`);
  }
}

async function admitPodEviction(attributes: AdmissionAttributes, node: string, find: FindPod): Promise<void> {
  if (attributes.operation !== "CREATE") throw refuse(attributes, `unexpected operation ${attributes.operation}`);
  // The object carries the pod's name too; the name in the URL wins.
  const name = attributes.name || (attributes.object?.metadata.name ?? "");
  if (name === "") throw refuse(attributes, "could not determine pod from request data");
  const pod = await find(attributes.namespace, name);
  if (pod.spec?.nodeName !== node) {
    throw refuse(attributes, `node ${node} can only evict pods with spec.nodeName set to itself`);
  }
}

/** Labels below kubernetes.io that a kubelet may set on its node; the others are reserved for administrators. */
const ownLabels = new Set([
  "kubernetes.io/hostname",
  "kubernetes.io/arch",
  "kubernetes.io/os",
  "beta.kubernetes.io/instance-type",
  "node.kubernetes.io/instance-type",
  "failure-domain.beta.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
  "topology.kubernetes.io/region",
  "topology.kubernetes.io/zone",
  "beta.kubernetes.io/os",
  "beta.kubernetes.io/arch",
]);
const restrictedNamespace = "node-restriction.kubernetes.io";

function isForbiddenLabel(key: string): boolean {
  const namespace = key.includes("/") ? key.split("/")[0]! : "";
  if (namespace === restrictedNamespace || namespace.endsWith(`.${restrictedNamespace}`)) return true;
  if (ownLabels.has(key)) return false;
  const ofKubelet = ["kubelet.kubernetes.io", "node.kubernetes.io"].some(
    (own) => namespace === own || namespace.endsWith(`.${own}`),
  );
  if (ofKubelet) return false;
  return ["kubernetes.io", "k8s.io"].some((reserved) => namespace === reserved || namespace.endsWith(`.${reserved}`));
}

function admitNode(attributes: AdmissionAttributes<Node>, node: string): void {
  const quoted = JSON.stringify(node);
  const requested = attributes.name || attributes.object?.metadata.name || "";
  if (requested !== node) {
    throw refuse(attributes, `node ${quoted} is not allowed to modify node ${JSON.stringify(requested)}`);
  }
  const object = attributes.object;
  if (attributes.operation === "CREATE") {
    if (object?.spec?.configSource !== undefined)
      throw refuse(attributes, `node ${quoted} is not allowed to create pods with a non-nil configSource`);
    const forbidden = Object.keys(object?.metadata.labels ?? {}).filter((key) => isForbiddenLabel(key));
    if (forbidden.length > 0)
      throw refuse(attributes, `node ${quoted} is not allowed to set the following labels: ${forbidden.sort().join(", ")}`);
  }
  if (attributes.operation === "UPDATE") {
    const before = attributes.oldObject!;
    if (object?.spec?.configSource !== undefined && !semanticEqual(object.spec.configSource, before.spec?.configSource)) {
      throw refuse(attributes, `node ${quoted} is not allowed to update configSource to a new non-nil configSource`);
    }
    if (!semanticEqual(object?.spec?.taints, before.spec?.taints)) {
      throw refuse(attributes, `node ${quoted} is not allowed to modify taints`);
    }
    const [now, had] = [object?.metadata.labels ?? {}, before.metadata.labels ?? {}];
    const changed = [...new Set([...Object.keys(now), ...Object.keys(had)])].filter((key) => now[key] !== had[key]);
    const forbidden = changed.filter((key) => isForbiddenLabel(key));
    if (forbidden.length > 0) throw refuse(attributes, `is not allowed to modify labels: ${forbidden.sort().join(", ")}`);
    // Since 1.24 upstream: with a missing owner the node would be collected, and the kubelet could recreate it with any labels.
    if (!semanticEqual(object?.metadata.ownerReferences, before.metadata.ownerReferences)) {
      throw refuse(attributes, `node ${quoted} is not allowed to modify ownerReferences`);
    }
  }
}

function admitClaimStatus(attributes: AdmissionAttributes<PersistentVolumeClaim>, node: string): void {
  if (attributes.subresource !== "status") throw refuse(attributes, "may only update PVC status");
  if (attributes.operation !== "UPDATE") throw refuse(attributes, `unexpected operation ${JSON.stringify(attributes.operation)}`);
  // Removes what a resize changes: capacity, conditions and the like.
  const strip = (claim: PersistentVolumeClaim): object => {
    const { managedFields: _m, resourceVersion: _r, ...metadata } = claim.metadata;
    const { capacity: _c, conditions: _d, resizeStatus: _s, allocatedResources: _a, ...status } = claim.status ?? {};
    return { ...claim, metadata, status };
  };
  if (!semanticEqual(strip(attributes.object!), strip(attributes.oldObject!))) {
    throw refuse(
      attributes,
      `node ${JSON.stringify(node)} is not allowed to update fields other than status.capacity and status.conditions`,
    );
  }
}

interface TokenRequest extends KubeObject {
  spec?: { boundObjectRef?: { apiVersion?: string; kind?: string; name?: string; uid?: string } };
}

async function admitToken(attributes: AdmissionAttributes<TokenRequest>, node: string, find: FindPod): Promise<void> {
  if (attributes.subresource !== "token" || attributes.operation !== "CREATE") return;
  const ref = attributes.object?.spec?.boundObjectRef;
  if (ref === undefined || ref.apiVersion !== "v1" || ref.kind !== "Pod" || !ref.name) {
    throw refuse(attributes, "node requested token not bound to a pod");
  }
  if (!ref.uid) throw refuse(attributes, "node requested token with a pod binding without a uid");
  const pod = await find(attributes.namespace, ref.name);
  if (pod.metadata.uid !== ref.uid) {
    throw refuse(
      attributes,
      `the UID in the bound object reference (${ref.uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  }
  if (pod.spec?.nodeName !== node) {
    throw refuse(attributes, "node requested token bound to a pod scheduled on a different node");
  }
}

function admitLease(attributes: AdmissionAttributes, node: string): void {
  const { namespace, operation } = attributes;
  if (namespace !== "kube-node-lease")
    throw refuse(attributes, 'can only access leases in the "kube-node-lease" system namespace');
  const name = operation === "CREATE" ? attributes.object?.metadata.name : attributes.name;
  if (name !== node) throw refuse(attributes, "can only access node lease with the same name as the requesting node");
}

function admitCsiNode(attributes: AdmissionAttributes, node: string): void {
  const name = attributes.operation === "CREATE" ? attributes.object?.metadata.name : attributes.name;
  if (name !== node) throw refuse(attributes, "can only access CSINode with the same name as the requesting node");
}
