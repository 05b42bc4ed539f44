import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { containerFieldPath } from "./pod/pod.ts";
import type { PodDecisions } from "./pod/pod-decisions.ts";
import type { ContainerEvent } from "./runtime/containers.ts";

/** Logs events of the node and its Pods, and records them unless the agent is standalone. */
export interface AgentEvents {
  node(type: "Normal" | "Warning", reason: string, message: string): void;
  /** For the Pod, or for one of its containers. */
  pod: ContainerEvent;
}

/** Creates the event recorder of the agent; without `recorder` (standalone mode), events are only logged. */
export function newAgentEvents(options: {
  recorder: EventRecorder | undefined;
  nodeName: string;
  log: Logger;
  decisions?: PodDecisions;
}): AgentEvents {
  const { recorder, nodeName, log, decisions } = options;
  // The UID is the node's name: upstream refers to the node this way, and `kubectl describe node` selects by it.
  const node = { apiVersion: "v1", kind: "Node", name: nodeName, uid: nodeName };
  return {
    node(type, reason, message) {
      log.v(3)?.info("Event occurred", { object: nodeName, type, reason, message });
      if (type === "Warning") decisions?.node(nodeName, reason, message);
      recorder?.event(node, type, reason, message);
    },
    pod(pod, container, type, reason, message, annotations) {
      const { namespace, name, uid, resourceVersion } = pod.metadata;
      log.v(3)?.info("Event occurred", { object: `${namespace}/${name}`, type, reason, message });
      decisions?.event(pod, container?.name, type, reason, message);
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
        { annotations },
      );
    },
  };
}
