import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { configSeenAnnotation, configSourceAnnotation, type NodePod } from "../pod/pod.ts";
import type { PodSources } from "./merge.ts";

/**
 * Pods bound to this node, from an informer with `spec.nodeName=<node>`. The caller marks the source as synced.
 * Source: pkg/kubelet/config/apiserver.go
 */
export function followApiserver(informer: SharedInformer<Pod>, sources: PodSources, clock: Clock): void {
  const want = (pod: NodePod): void => {
    const before = sources.get(pod.metadata.uid)?.metadata.annotations;
    sources.upsert("api", marked(pod, before?.[configSeenAnnotation] ?? new Date(clock.now()).toISOString()));
  };
  informer.addHandler({
    added: (pod) => isComplete(pod) && want(pod),
    updated: (before, pod) => {
      if (!isComplete(pod)) return;
      if (before.metadata.uid !== pod.metadata.uid && before.metadata.uid !== undefined)
        sources.remove("api", before.metadata.uid);
      want(pod);
    },
    deleted: (pod) => pod.metadata.uid !== undefined && sources.remove("api", pod.metadata.uid),
  });
}

/**
 * The source annotation is set by the kubelet, whatever the object contains: static Pods are exempt from admission under
 * pressure and from eviction. Source: pkg/kubelet/config/config.go merge
 */
function marked(pod: NodePod, seen: string): NodePod {
  const annotations = { ...pod.metadata.annotations, [configSourceAnnotation]: "api", [configSeenAnnotation]: seen };
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

/** Whether a Pod has what Pods from all sources have; the API server gives no others. */
export function isComplete(pod: Pod): pod is NodePod {
  const { name, namespace, uid } = pod.metadata;
  return pod.spec !== undefined && name !== undefined && namespace !== undefined && uid !== undefined;
}
