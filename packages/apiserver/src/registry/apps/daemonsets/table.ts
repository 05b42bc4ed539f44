import type { DaemonSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { age, containerCells, labelsText, selectorText, tableOf } from "../../cells.ts";

export const daemonSetTable = tableOf<DaemonSet>("daemonsets", (daemonSet, ages) => [
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
]);
