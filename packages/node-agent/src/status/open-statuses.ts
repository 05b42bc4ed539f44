import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { ApiConnection } from "../node/api-connection.ts";
import type { OwnNode } from "../node/own-node.ts";
import { isStaticPod, type NodePod } from "../pod/pod.ts";
import { isComplete } from "../sources/apiserver.ts";
import { type MirrorPods, newMirrorPods } from "./mirror-pods.ts";
import { newStatusManager, type StatusManager } from "./status-manager.ts";

interface OpenStatusesOptions {
  api: Pick<ApiConnection, "client" | "pods"> | undefined;
  node: Pick<OwnNode, "registered">;
  clock: Clock;
  log: Logger;
}

/** The status manager and the mirror Pods. */
interface OpenedStatuses {
  status: StatusManager;
  /** Undefined in standalone mode. */
  mirrors: MirrorPods | undefined;
}

/** Creates the status manager and the mirror Pods. The status of a static Pod is written to its mirror Pod. */
export function openStatuses({ api, node, clock, log }: OpenStatusesOptions): OpenedStatuses {
  const apiPods = (): NodePod[] => (api?.pods.lister.list() ?? []).filter(isComplete);
  const mirrors = api && newMirrorPods({ client: api.client, log, apiPods, node: async () => node.registered() });
  const status = newStatusManager({
    client: api?.client,
    clock,
    log,
    apiPodOf(pod) {
      if (isStaticPod(pod)) return mirrors?.of(pod);
      const { namespace, name, uid } = pod.metadata;
      const found = api?.pods.lister.get(`${namespace}/${name}`);
      // A pod that was created again with the same name must not get the status of the former one.
      return found?.metadata.uid === uid ? found : undefined;
    },
  });
  return { status, mirrors };
}
