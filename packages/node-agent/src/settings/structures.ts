import type { ObjectShape } from "@coxswain/apimachinery/flags/config-shape";

/**
 * Objects that are list items in a KubeletConfiguration.
 * Source: k8s.io/kubelet/config/v1beta1
 */

export interface Taint {
  key: string;
  value?: string;
  effect: string;
}

export const taintShape: ObjectShape = {
  goName: "Taint",
  fields: { key: "string", value: "string", effect: "string", timeAdded: "string" },
};

/** Memory of one NUMA node that is reserved for the system; keys of `limits` are `memory` and `hugepages-<size>`. */
export interface ReservedMemory {
  numaNode: number;
  limits: Readonly<Record<string, string>>;
}

export const reservedMemoryShape: ObjectShape = {
  goName: "MemoryReservation",
  fields: { numaNode: "int", limits: { mapOf: "any" } },
};

/** Grace period of Pods with this priority or higher, up to the priority of the next group. */
export interface ShutdownGroup {
  priority: number;
  shutdownGracePeriodSeconds: number;
}

export const shutdownGroupShape: ObjectShape = {
  goName: "ShutdownGracePeriodByPodPriority",
  fields: { priority: "int", shutdownGracePeriodSeconds: "int64" },
};
