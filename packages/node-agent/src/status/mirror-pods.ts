import type { Client } from "@coxswain/apimachinery/client/client";
import { isAlreadyExists, isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { configHashAnnotation, configMirrorAnnotation, fullName, isMirrorPod, isStaticPod, type NodePod } from "../pod/pod.ts";

interface MirrorPodsOptions {
  client: Client;
  log: Logger;
  /** All Pods of this node in the API server. */
  apiPods: () => readonly NodePod[];
  /** The registered Node, as owner of the mirror Pods; undefined before the registration. */
  node: () => Promise<Node | undefined>;
}

export interface MirrorPods {
  /** Creates the mirror Pod of a static Pod; deletes one that is outdated. */
  ensure(pod: NodePod): Promise<void>;
  of(pod: NodePod): NodePod | undefined;
  /** Deletes mirror Pods that belong to none of these static Pods. */
  removeOrphans(statics: readonly NodePod[]): Promise<void>;
}

/** Represents static Pods in the API server. Source: pkg/kubelet/pod/mirror_client.go */
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
          return; // created again when the deletion was observed
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
