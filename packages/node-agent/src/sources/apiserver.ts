import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { NodePod } from "../pods/pod.ts";
import type { PodSources } from "./merge.ts";

/**
 * Pods that were bound to this node: an informer over `spec.nodeName=<node>`. The source counts as heard when the
 * informer has its first list.
 * Source: pkg/kubelet/config/apiserver.go
 */
export function followApiserver(informer: SharedInformer<Pod>, sources: PodSources): void {
  informer.addHandler({
    added: (pod) => isComplete(pod) && sources.upsert("api", pod),
    updated: (before, pod) => {
      if (!isComplete(pod)) return;
      if (before.metadata.uid !== pod.metadata.uid && before.metadata.uid !== undefined)
        sources.remove("api", before.metadata.uid);
      sources.upsert("api", pod);
    },
    deleted: (pod) => pod.metadata.uid !== undefined && sources.remove("api", pod.metadata.uid),
  });
}

function isComplete(pod: Pod): pod is NodePod {
  const { name, namespace, uid } = pod.metadata;
  return pod.spec !== undefined && name !== undefined && namespace !== undefined && uid !== undefined;
}
