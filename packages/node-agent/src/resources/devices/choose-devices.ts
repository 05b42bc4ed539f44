import { choicesOf, type Hint } from "../topology/hints.ts";
import type { PluginDevice } from "./plugin-schema.ts";

/** The NUMA nodes of a device; empty when it has no topology. */
export const nodesOf = (device: PluginDevice | undefined): number[] => (device?.topology?.nodes ?? []).map(({ ID }) => ID);

/** The plugin's GetPreferredAllocation: which of the available devices to use, including `mustInclude`. */
type Prefer = (available: readonly string[], mustInclude: readonly string[], count: number) => Promise<readonly string[]>;

/**
 * The devices for a container: those reusable from init containers first, then devices on the hint's nodes, in the plugin's
 * order of preference, then others.
 * @throws Error when there are not enough
 * Source: pkg/kubelet/cm/devicemanager/manager.go devicesToAllocate, filterByAffinity
 */
export async function chooseDevices(request: {
  resource: string;
  count: number;
  devices: ReadonlyMap<string, PluginDevice>;
  reusable: readonly string[];
  /** Healthy and not in use. */
  available: readonly string[];
  hint: Hint;
  prefer: Prefer;
}): Promise<string[]> {
  const { resource, count, devices, hint, prefer } = request;
  const chosen = new Set([...request.reusable].sort().slice(0, count));
  const available = request.available.filter((id) => !chosen.has(id)).sort();
  const missing = (): number => count - chosen.size;
  const take = (ids: readonly string[]): void => {
    for (const id of ids) if (missing() > 0) chosen.add(id);
  };
  if (missing() === 0) return [...chosen];
  if (available.length < missing()) {
    throw new Error(
      `requested number of devices unavailable for ${resource}. Requested: ${missing()}, Available: ${available.length}`,
    );
  }
  const matters = hint.nodes !== undefined && [...devices.values()].some(({ topology }) => topology !== null);
  const aligned: string[] = [];
  const elsewhere: string[] = [];
  const anywhere: string[] = [];
  for (const id of available) {
    const nodes = nodesOf(devices.get(id));
    if (!matters || nodes.length === 0) anywhere.push(id);
    else if (nodes.some((node) => hint.nodes?.includes(node))) aligned.push(id);
    else elsewhere.push(id);
  }
  // With more aligned devices than needed, the plugin chooses among them. Otherwise all aligned devices are taken first.
  const from = missing() < aligned.length ? aligned : available;
  if (from === available) take(aligned);
  if (missing() > 0) {
    const offered = new Set(from);
    const preferred = await prefer([...offered.union(chosen)].sort(), [...chosen], count);
    take(preferred.filter((id) => offered.has(id)));
    take(from === aligned ? aligned : [...elsewhere, ...anywhere]);
  }
  return [...chosen];
}

/**
 * Pure: the sets of NUMA nodes that can provide `count` devices. @param counted devices that are free or reusable
 * Source: pkg/kubelet/cm/devicemanager/topology_hints.go generateDeviceTopologyHints
 */
export function deviceHints(
  numaNodes: readonly number[],
  devices: ReadonlyMap<string, PluginDevice>,
  counted: { available: readonly string[]; reusable: readonly string[] },
  count: number,
): Hint[] {
  const reusable = new Set(counted.reusable);
  const placesOf = (ids: Iterable<string>): readonly Place[] => groupByNodes(devices, ids);
  const all = placesOf(devices.keys());
  const reused = placesOf(reusable);
  const fresh = placesOf(counted.available.filter((id) => !reusable.has(id)));
  let fewest = numaNodes.length;
  const possible: number[][] = [];
  for (const choice of choicesOf(numaNodes)) {
    if (numberAt(all, choice) >= count) fewest = Math.min(fewest, choice.length);
    const again = numberAt(reused, choice);
    if (again < reusable.size) continue;
    if (again + numberAt(fresh, choice) >= count) possible.push(choice);
  }
  return possible.map((choice) => ({ nodes: choice, preferred: choice.length === fewest }));
}

/** The number of devices that are on exactly these NUMA nodes. */
interface Place {
  nodes: readonly number[];
  number: number;
}

/** Sets of nodes are compared with places, of which there are few, and not with each of tens of thousands of devices. */
function groupByNodes(devices: ReadonlyMap<string, PluginDevice>, ids: Iterable<string>): readonly Place[] {
  const places = new Map<string, Place>();
  for (const id of ids) {
    const nodes = nodesOf(devices.get(id));
    places.getOrInsertComputed(nodes.join(), () => ({ nodes, number: 0 })).number++;
  }
  return [...places.values()];
}

function numberAt(places: readonly Place[], choice: readonly number[]): number {
  let sum = 0;
  for (const { nodes, number } of places) if (nodes.some((node) => choice.includes(node))) sum += number;
  return sum;
}
