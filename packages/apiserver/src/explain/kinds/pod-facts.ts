/** Input of the rules for pods, besides the pod. */

import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Node, PersistentVolumeClaim, Pod, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { refToObject } from "../refusals.ts";
import { isSeen, type Look, type Reader } from "../rule.ts";

interface ClaimOfPod {
  readonly name: string;
  readonly ref: ObjectRef;
  readonly claim: Look<PersistentVolumeClaim>;
}

export interface PodFacts {
  readonly claims: readonly ClaimOfPod[];
  /** The pod's node; undefined before it is scheduled. */
  readonly node: Look<Node> | undefined;
  /** All nodes, read for an unscheduled pod; undefined when the user may not list them. */
  readonly nodes: readonly Node[] | undefined;
  readonly nodeRefs: readonly ObjectRef[];
  /** Name of the topmost controller that the user may read, which has the pod template: `deployment/web` */
  readonly topOwner: string | undefined;
  /** Config maps and secrets that the pod needs and that do not exist. */
  readonly missing: readonly string[];
}

/** The claim of a volume: the one that it names, or that of the ephemeral volume. */
export const claimNameOf = ({ metadata }: Pod, { persistentVolumeClaim, ephemeral, name }: Volume): string | undefined =>
  persistentVolumeClaim?.claimName ?? (ephemeral ? `${metadata.name}-${name}` : undefined);

/**
 * Reads what the rules for pods need: the pod's claims, its owners, missing config maps and secrets, and either its node or, for
 * an unscheduled pod, all nodes.
 */
export async function gatherPod(pod: Pod, reader: Reader): Promise<PodFacts> {
  const { namespace = "" } = pod.metadata;
  const claims: ClaimOfPod[] = [];
  for (const volume of pod.spec.volumes ?? []) {
    const name = claimNameOf(pod, volume);
    if (name === undefined) continue;
    const claim = await reader.get<PersistentVolumeClaim>("persistentvolumeclaims", "", namespace, name);
    claims.push({ name, claim, ref: refToObject("", "persistentvolumeclaims", "PersistentVolumeClaim", namespace, name) });
  }
  const { nodeName } = pod.spec;
  const nodes = nodeName ? undefined : await reader.list<Node>("nodes", "", "");
  return {
    claims,
    node: nodeName ? await reader.get<Node>("nodes", "", "", nodeName) : undefined,
    nodes,
    nodeRefs: (nodes ?? []).map((node) => reader.refOf(node, "nodes", "")),
    topOwner: await topOwnerOf(pod, reader),
    missing: await missingSources(pod, reader),
  };
}

/** Follows controller references: a pod names its ReplicaSet, which names its Deployment. The number of steps is limited. */
async function topOwnerOf(pod: Pod, reader: Reader): Promise<string | undefined> {
  let object: KubeObject = pod;
  let found: string | undefined;
  for (let step = 0; step < 4; step++) {
    const owner = object.metadata.ownerReferences?.find(({ controller }) => controller);
    const resource = owner && reader.resourceOf(owner.apiVersion, owner.kind);
    if (owner === undefined || resource === undefined) return found;
    const next = await reader.get(resource.resource, resource.group, pod.metadata.namespace ?? "", owner.name);
    if (!isSeen(next) || next.metadata.uid !== owner.uid) return found;
    found = `${owner.kind.toLowerCase()}/${owner.name}`;
    object = next;
  }
  return found;
}

async function missingSources(pod: Pod, reader: Reader): Promise<string[]> {
  const { namespace = "" } = pod.metadata;
  const missing: string[] = [];
  const look = async (resource: "configmaps" | "secrets", what: string, name: string | undefined, optional?: boolean) => {
    if (!name || optional || missing.includes(`${what} ${name}`)) return;
    if ((await reader.get(resource, "", namespace, name)) === "missing") missing.push(`${what} ${name}`);
  };
  for (const { configMap, secret, projected } of pod.spec.volumes ?? []) {
    await look("configmaps", "config map", configMap?.name, configMap?.optional);
    await look("secrets", "secret", secret?.secretName, secret?.optional);
    for (const source of projected?.sources ?? []) {
      await look("configmaps", "config map", source.configMap?.name, source.configMap?.optional);
      await look("secrets", "secret", source.secret?.name, source.secret?.optional);
    }
  }
  for (const { env = [], envFrom = [] } of [...(pod.spec.initContainers ?? []), ...(pod.spec.containers ?? [])]) {
    for (const { valueFrom } of env) {
      await look("configmaps", "config map", valueFrom?.configMapKeyRef?.name, valueFrom?.configMapKeyRef?.optional);
      await look("secrets", "secret", valueFrom?.secretKeyRef?.name, valueFrom?.secretKeyRef?.optional);
    }
    for (const { configMapRef, secretRef } of envFrom) {
      await look("configmaps", "config map", configMapRef?.name, configMapRef?.optional);
      await look("secrets", "secret", secretRef?.name, secretRef?.optional);
    }
  }
  return missing;
}
