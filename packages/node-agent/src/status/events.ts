import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { containerFieldPath } from "../pods/pod.ts";
import type { ContainerEvent } from "../runtime/containers.ts";

/** What the agent tells of its node and Pods; without an API server it goes to the log alone. */
export interface AgentEvents {
  node(type: "Normal" | "Warning", reason: string, message: string): void;
  /** Of the Pod, or of one container in it. */
  pod: ContainerEvent;
}

export function newAgentEvents(options: { recorder: EventRecorder | undefined; nodeName: string; log: Logger }): AgentEvents {
  const { recorder, nodeName, log } = options;
  // The uid is the name: so upstream's kubelet refers to its node, and `kubectl describe node` looks for it.
  const node = { apiVersion: "v1", kind: "Node", name: nodeName, uid: nodeName };
  return {
    node: (type, reason, message) => recorder?.event(node, type, reason, message),
    pod(pod, container, type, reason, message) {
      const { namespace, name, uid, resourceVersion } = pod.metadata;
      log.v(3)?.info("Event occurred", { object: `${namespace}/${name}`, type, reason, message });
      const fieldPath = container && containerFieldPath(container.kind, container.name);
      recorder?.event(
        {
          apiVersion: "v1",
          kind: "Pod",
          namespace,
          name,
          uid,
          ...(resourceVersion !== undefined && { resourceVersion }),
          ...(fieldPath !== undefined && { fieldPath }),
        },
        type,
        reason,
        message,
      );
    },
  };
}
