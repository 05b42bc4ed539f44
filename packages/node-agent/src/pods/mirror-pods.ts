import type { Client } from "@coxswain/apimachinery/client/client";
import { isAlreadyExists, isConflict, isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { Node, Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/schema/kinds/resources";
import { configHashAnnotation, configMirrorAnnotation, fullName, isMirrorPod, isStaticPod, type NodePod } from "./pod.ts";

export interface MirrorPodsOptions {
  client: Client;
  log: Logger;
  /** Every Pod of this node that the API server has. */
  apiPods: () => readonly NodePod[];
  /** With its uid, for the owner reference; undefined while the node is not registered. */
  node: () => Promise<Node | undefined>;
}

export interface MirrorPods {
  /** Sees to it that the API server shows a static Pod as it is; an old mirror is replaced. */
  ensure(pod: NodePod): Promise<void>;
  of(pod: NodePod): NodePod | undefined;
  /** Mirrors of none of these static Pods are deleted. */
  removeOrphans(statics: readonly NodePod[]): Promise<void>;
}

/** Static Pods as the API server sees them. Source: pkg/kubelet/pod/mirror_client.go */
export function newMirrorPods(options: MirrorPodsOptions): MirrorPods {
  const { client, log } = options;

  function of(pod: NodePod): NodePod | undefined {
    return options.apiPods().find((candidate) => isMirrorPod(candidate) && fullName(candidate) === fullName(pod));
  }

  async function remove(mirror: NodePod): Promise<void> {
    const { namespace, name, uid } = mirror.metadata;
    try {
      await client.delete(pods, { namespace, name }, { gracePeriodSeconds: 0, preconditions: { uid } });
    } catch (err) {
      if (!isNotFound(err) && !isConflict(err)) throw err;
    }
  }

  return {
    of,
    async ensure(pod) {
      if (!isStaticPod(pod)) return;
      try {
        const mirror = of(pod);
        const hash = pod.metadata.annotations?.[configHashAnnotation] ?? "";
        if (mirror !== undefined) {
          const isCurrent = mirror.metadata.annotations?.[configMirrorAnnotation] === hash;
          if (isCurrent && mirror.metadata.deletionTimestamp == null) return;
          log.info("Trying to delete mirror pod", { pod: fullName(mirror) });
          await remove(mirror);
          return; // made anew when the deletion was seen
        }
        const node = await options.node();
        if (node?.metadata.uid === undefined || node.metadata.deletionTimestamp != null) return;
        const { uid: _, ...metadata } = pod.metadata;
        const owner = {
          apiVersion: "v1",
          kind: "Node",
          name: node.metadata.name ?? "",
          uid: node.metadata.uid,
          controller: true,
        };
        const copy: Pod = {
          apiVersion: "v1",
          kind: "Pod",
          metadata: {
            ...metadata,
            annotations: { ...metadata.annotations, [configMirrorAnnotation]: hash },
            ownerReferences: [owner],
          },
          spec: pod.spec,
        };
        await client.create(pods, copy, { namespace: pod.metadata.namespace });
      } catch (err) {
        if (isAlreadyExists(err)) return;
        log.error("Failed creating a mirror pod for", err, { pod: fullName(pod) });
      }
    },
    async removeOrphans(statics) {
      const names = new Set(statics.filter(isStaticPod).map(fullName));
      for (const mirror of options.apiPods()) {
        if (!isMirrorPod(mirror) || names.has(fullName(mirror))) continue;
        await remove(mirror).catch((err) => log.error("Failed deleting mirror pod", err, { pod: fullName(mirror) }));
      }
    },
  };
}
