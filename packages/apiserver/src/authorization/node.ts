/**
 * Restricts kubelets to objects related to their node: secrets, config maps, claims, volumes and tokens are accessible only
 * when a pod bound to the node references them. Everything else follows the static rules of the role system:node.
 * With the feature gate DynamicKubeletConfig, the config map of the node's spec.configSource is accessible too.
 * Source: plugin/pkg/auth/authorizer/node/node_authorizer.go, graph.go
 */
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Node, PersistentVolume, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, persistentVolumes, pods, volumeAttachments } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { nodeNameOf } from "../request/user-names.ts";
import type { Attributes, Authorizer, Decision, PolicyRule } from "./authorizer.ts";
import { podReferences, type ReferenceKind, referenceKey, volumeSecretReferences } from "./pod-references.ts";
import { ruleAllows } from "./policy-rule.ts";

/** References from nodes to objects, at the time of the call. */
export interface NodeGraph {
  readonly synced: boolean;
  refersTo(
    node: string,
    kind: ReferenceKind | "persistentvolumes" | "volumeattachments",
    namespace: string,
    name: string,
  ): boolean;
}

export function nodeAuthorizer(graph: NodeGraph, nodeRules: readonly PolicyRule[]): Authorizer {
  return (attributes) => {
    const node = nodeNameOf(attributes.user);
    if (node === undefined) return { decision: "no-opinion" };
    if (attributes.isResourceRequest) {
      const special = decideByGraph(graph, node, attributes);
      if (special !== undefined) return special;
    }
    return nodeRules.some((rule) => ruleAllows(rule, attributes)) ? { decision: "allow" } : { decision: "no-opinion" };
  };
}

/** @returns undefined for resources that the static rules decide. */
function decideByGraph(graph: NodeGraph, node: string, attributes: Attributes): Decision | undefined {
  switch (`${attributes.resource}.${attributes.group}`) {
    case "secrets.":
      return readNamespaced(graph, node, "secrets", attributes);
    case "configmaps.":
      return readNamespaced(graph, node, "configmaps", attributes);
    case "persistentvolumeclaims.":
      if (attributes.subresource === "status") return updateStatus(graph, node, attributes);
      return readOne(graph, node, "persistentvolumeclaims", attributes);
    case "persistentvolumes.":
      return readOne(graph, node, "persistentvolumes", attributes);
    case "volumeattachments.storage.k8s.io":
      return readOne(graph, node, "volumeattachments", attributes);
    case "serviceaccounts.":
      return createToken(graph, node, attributes);
    case "leases.coordination.k8s.io":
      return ownLease(node, attributes);
    case "csinodes.storage.k8s.io":
      return ownCsiNode(node, attributes);
    default:
      return undefined;
  }
}

const no = (reason: string): Decision => ({ decision: "no-opinion", reason });

function related(graph: NodeGraph, node: string, kind: Parameters<NodeGraph["refersTo"]>[1], attributes: Attributes): Decision {
  if (attributes.name === "") return no("No Object name found");
  if (graph.refersTo(node, kind, attributes.namespace, attributes.name)) return { decision: "allow" };
  return no(`no relationship found between node '${node}' and this object`);
}

function readNamespaced(graph: NodeGraph, node: string, kind: ReferenceKind, attributes: Attributes): Decision {
  if (!["get", "list", "watch"].includes(attributes.verb)) return no("can only read resources of this type");
  if (attributes.subresource !== "") return no("cannot read subresource");
  if (attributes.namespace === "") return no("can only read namespaced object of this type");
  return related(graph, node, kind, attributes);
}

function readOne(graph: NodeGraph, node: string, kind: Parameters<NodeGraph["refersTo"]>[1], attributes: Attributes): Decision {
  if (attributes.verb !== "get") return no("can only get individual resources of this type");
  if (attributes.subresource !== "") return no("cannot get subresource");
  return related(graph, node, kind, attributes);
}

function updateStatus(graph: NodeGraph, node: string, attributes: Attributes): Decision {
  if (attributes.verb !== "update" && attributes.verb !== "patch") return no("can only get/update/patch this type");
  return related(graph, node, "persistentvolumeclaims", attributes);
}

function createToken(graph: NodeGraph, node: string, attributes: Attributes): Decision {
  if (attributes.verb !== "create" || attributes.name === "") return no("can only create tokens for individual service accounts");
  if (attributes.subresource !== "token") return no("can only create token subresource of serviceaccount");
  return related(graph, node, "serviceaccounts", attributes);
}

function ownLease(node: string, attributes: Attributes): Decision {
  if (!["get", "create", "update", "patch", "delete"].includes(attributes.verb)) {
    return no("can only get, create, update, patch, or delete a node lease");
  }
  if (attributes.namespace !== "kube-node-lease") return no('can only access leases in the "kube-node-lease" system namespace');
  // The name of a created object is in the body, which the NodeRestriction plugin checks.
  if (attributes.verb !== "create" && attributes.name !== node)
    return no("can only access node lease with the same name as the requesting node");
  return { decision: "allow" };
}

function ownCsiNode(node: string, attributes: Attributes): Decision {
  if (!["get", "create", "update", "patch", "delete"].includes(attributes.verb)) {
    return no("can only get, create, update, patch, or delete a CSINode");
  }
  if (attributes.subresource !== "") return no("cannot authorize CSINode subresources");
  if (attributes.verb !== "create" && attributes.name !== node)
    return no("can only access CSINode with the same name as the requesting node");
  return { decision: "allow" };
}

/**
 * The graph as informer indexes, which need no further synchronization.
 * @param options.configSources whether nodes may read the config map of their spec.configSource
 */
export function informedNodeGraph(informers: InformerFactory, options: { configSources: boolean }): NodeGraph {
  const byReference = "referenceFromNode";
  const byClaim = "claim";
  const bySecret = "secret";
  const podInformer = informers.for<Pod & { metadata: object }>(pods);
  const volumeInformer = informers.for<PersistentVolume & { metadata: object }>(persistentVolumes);
  const attachmentInformer = informers.for<VolumeAttachment & { metadata: object }>(volumeAttachments);
  const nodeInformer = options.configSources ? informers.for<Node & { metadata: object }>(nodes) : undefined;
  podInformer.addIndex(byReference, (pod) => {
    const node = pod.spec?.nodeName;
    return node ? [...podReferences(pod)].map((reference) => `${node}/${reference}`) : [];
  });
  const claimOf = (volume: PersistentVolume): { namespace: string; name: string } | undefined => {
    const claim = volume.spec?.claimRef;
    return claim?.name === undefined ? undefined : { namespace: claim.namespace ?? "", name: claim.name };
  };
  volumeInformer.addIndex(byClaim, (volume) => {
    const claim = claimOf(volume);
    return claim === undefined ? [] : [referenceKey("persistentvolumeclaims", claim.namespace, claim.name)];
  });
  volumeInformer.addIndex(bySecret, (volume) => {
    const claim = claimOf(volume);
    return claim === undefined ? [] : volumeSecretReferences(volume, claim.namespace);
  });
  const podRefersTo = (node: string, reference: string): boolean =>
    podInformer.lister.byIndex(byReference, `${node}/${reference}`).length > 0;
  const usesVolume = (node: string, volume: PersistentVolume): boolean => {
    const claim = claimOf(volume);
    return claim !== undefined && podRefersTo(node, referenceKey("persistentvolumeclaims", claim.namespace, claim.name));
  };
  return {
    get synced() {
      return podInformer.synced && volumeInformer.synced && attachmentInformer.synced && nodeInformer?.synced !== false;
    },
    refersTo(node, kind, namespace, name) {
      if (kind === "volumeattachments") return attachmentInformer.lister.get(name)?.spec?.nodeName === node;
      if (kind === "persistentvolumes") {
        const volume = volumeInformer.lister.get(name);
        return volume !== undefined && usesVolume(node, volume);
      }
      const reference = referenceKey(kind, namespace, name);
      if (podRefersTo(node, reference)) return true;
      const source = kind === "configmaps" ? nodeInformer?.lister.get(node)?.spec?.configSource?.configMap : undefined;
      if (source !== undefined && source.namespace === namespace && source.name === name) return true;
      return kind === "secrets" && volumeInformer.lister.byIndex(bySecret, reference).some((volume) => usesVolume(node, volume));
    },
  };
}
