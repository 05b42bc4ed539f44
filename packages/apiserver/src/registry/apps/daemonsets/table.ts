import type { DaemonSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import {
  age,
  ageColumn,
  containerCells,
  integer,
  labelsText,
  nameColumn,
  selectorText,
  tableOf,
  text,
  wide,
} from "../../cells.ts";

export const daemonSetTable = tableOf<DaemonSet>(
  [
    nameColumn,
    integer(
      "Desired",
      "The total number of nodes that should be running the daemon pod (including nodes correctly running the daemon pod). More info: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/",
    ),
    integer(
      "Current",
      "The number of nodes that are running at least 1 daemon pod and are supposed to run the daemon pod. More info: https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/",
    ),
    integer(
      "Ready",
      "numberReady is the number of nodes that should be running the daemon pod and have one or more of the daemon pod running with a Ready Condition.",
    ),
    integer("Up-to-date", "The total number of nodes that are running updated daemon pod"),
    integer(
      "Available",
      "The number of nodes that should be running the daemon pod and have one or more of the daemon pod running and available (ready for at least spec.minReadySeconds)",
    ),
    text(
      "Node Selector",
      "NodeSelector is a selector which must be true for the pod to fit on a node. Selector which must match a node's labels for the pod to be scheduled on that node. More info: https://kubernetes.io/docs/concepts/configuration/assign-pod-node/",
    ),
    ageColumn,
    wide("Containers", "Names of each container in the template."),
    wide("Images", "Images referenced by each container in the template."),
    wide(
      "Selector",
      "A label query over pods that are managed by the daemon set. Must match in order to be controlled. It must match the pod template's labels. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
    ),
  ],
  (daemonSet, ages) => [
    daemonSet.metadata.name ?? "",
    daemonSet.status?.desiredNumberScheduled ?? 0,
    daemonSet.status?.currentNumberScheduled ?? 0,
    daemonSet.status?.numberReady ?? 0,
    daemonSet.status?.updatedNumberScheduled ?? 0,
    daemonSet.status?.numberAvailable ?? 0,
    labelsText(daemonSet.spec?.template?.spec?.nodeSelector),
    age(daemonSet, ages),
    ...containerCells(daemonSet.spec?.template?.spec?.containers),
    selectorText(daemonSet.spec?.selector),
  ],
);
