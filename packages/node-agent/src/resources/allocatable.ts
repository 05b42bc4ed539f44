import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";

/** Resource name to quantity. */
export type Reserved = Readonly<Record<string, string>>;

/** Eviction signal to threshold: `memory.available` → `100Mi` or `10%`. */
export type EvictionThresholds = Readonly<Record<string, string>>;

/**
 * Pure: the node's allocatable resources: capacity minus the system and kube reservations and the hard eviction thresholds.
 * Negative results become 0. Source: pkg/kubelet/cm/node_container_manager_linux.go
 */
export function allocatable(
  capacity: Readonly<Record<string, string>>,
  reserved: { kube: Reserved; system: Reserved; evictionHard: EvictionThresholds },
): Record<string, string> {
  const left: Record<string, string> = {};
  for (const [name, text] of Object.entries(capacity)) {
    const total = Quantity.parse(text);
    let amount = total;
    for (const list of [reserved.kube, reserved.system]) {
      const taken = list[name];
      if (taken !== undefined) amount = amount.sub(Quantity.parse(taken));
    }
    const signal = evictionSignals[name];
    const threshold = signal === undefined ? undefined : reserved.evictionHard[signal];
    if (threshold !== undefined) amount = amount.sub(thresholdAmount(threshold, total));
    // Pre-allocated huge pages are part of MemTotal but are not available as ordinary memory.
    if (name === "memory") for (const pages of hugePagesIn(capacity)) amount = amount.sub(pages);
    left[name] = (amount.sign < 0 ? Quantity.parse("0") : amount).toString();
  }
  return left;
}

function hugePagesIn(capacity: Readonly<Record<string, string>>): Quantity[] {
  return Object.entries(capacity).flatMap(([name, text]) => (name.startsWith("hugepages-") ? [Quantity.parse(text)] : []));
}

const evictionSignals: Readonly<Record<string, string>> = {
  memory: "memory.available",
  "ephemeral-storage": "nodefs.available",
};

/** The amount of a threshold: a quantity, or a percentage of `total` (`10%`). */
export function thresholdAmount(threshold: string, total: Quantity): Quantity {
  if (!threshold.endsWith("%")) return Quantity.parse(threshold);
  const share = Number(threshold.slice(0, -1)) / 100;
  return Quantity.fromValue(Math.trunc(Number(total.value()) * share), "BinarySI");
}
