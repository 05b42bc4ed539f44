import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import { controllerOf } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { ReplicaSet, StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { Pod, ReplicationController, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  replicaSets,
  replicationControllers,
  services,
  statefulSets,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { isKeyOf } from "@coxswain/apimachinery/process/narrowing/keys";
import { labelOf } from "@coxswain/apimachinery/scheduling/labels";

/** Selects the pods of the same service or controller; an empty selector for a pod without either. */
export type SelectorOf = (pod: Pod) => LabelSelector;

/**
 * Combines the selectors of the services that select the pod and of its controller.
 * Source: pkg/scheduler/framework/plugins/helper/spread.go DefaultSelector
 */
export function newDefaultSelector(informers: Pick<InformerFactory, "for">): SelectorOf {
  const serviceLister = informers.for<Service>(services).lister;
  const controllerLister = informers.for<ReplicationController>(replicationControllers).lister;
  const owners = {
    "apps/v1/ReplicaSet": informers.for<ReplicaSet>(replicaSets).lister,
    "apps/v1/StatefulSet": informers.for<StatefulSet>(statefulSets).lister,
  };
  return (pod) => {
    const namespace = pod.metadata.namespace ?? "";
    const labels: Record<string, string> = {};
    for (const { spec } of serviceLister.inNamespace(namespace)) {
      const selected = spec?.selector;
      if (selected !== undefined && selects(selected, pod)) setAll(labels, selected);
    }
    const owner = controllerOf(pod);
    const kind = `${owner?.apiVersion}/${owner?.kind}`;
    const key = `${namespace}/${owner?.name}`;
    if (kind === "v1/ReplicationController") setAll(labels, controllerLister.get(key)?.spec?.selector ?? {});
    const selector = isKeyOf(owners, kind) ? owners[kind].get(key)?.spec?.selector : undefined;
    const own = LabelSelector.fromSet(labels);
    return selector === undefined ? own : own.and(LabelSelector.ofCached(selector));
  };
}

function selects(selector: Readonly<Record<string, string>>, { metadata }: Pod): boolean {
  // Creates no list of entries: each pod is compared with all services of its namespace.
  for (const key in selector) if (labelOf(metadata.labels, key) !== selector[key]) return false;
  return true;
}

/** Label keys come from users; plain assignment of `__proto__` would set the prototype. */
function setAll(target: Record<string, string>, from: Readonly<Record<string, string>>): void {
  for (const [key, value] of Object.entries(from))
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}
