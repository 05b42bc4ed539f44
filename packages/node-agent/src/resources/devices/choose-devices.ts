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
  const chosen = [...request.reusable].sort().slice(0, count);
  const available = request.available.filter((id) => !chosen.includes(id)).sort();
  const missing = (): number => count - chosen.length;
  const take = (ids: readonly string[]): void =>
    void chosen.push(...ids.filter((id) => !chosen.includes(id)).slice(0, missing()));
  if (missing() === 0) return chosen;
  if (available.length < missing()) {
    throw new Error(
      `requested number of devices unavailable for ${resource}. Requested: ${missing()}, Available: ${available.length}`,
    );
  }
  const matters = hint.nodes !== undefined && [...devices.values()].some(({ topology }) => topology !== null);
  const near = (id: string): boolean => nodesOf(devices.get(id)).some((node) => hint.nodes?.includes(node));
  const aligned = matters ? available.filter(near) : [];
  const elsewhere = available.filter((id) => matters && !near(id) && nodesOf(devices.get(id)).length > 0);
  const anywhere = available.filter((id) => !aligned.includes(id) && !elsewhere.includes(id));
  // With more aligned devices than needed, the plugin chooses among them. Otherwise all aligned devices are taken first.
  const from = missing() < aligned.length ? aligned : available;
  if (from === available) take(aligned);
  if (missing() > 0) {
    const preferred = await prefer([...from, ...chosen.filter((id) => !from.includes(id))].sort(), [...chosen], count);
    take(preferred.filter((id) => from.includes(id)));
    take(from === aligned ? aligned : [...elsewhere, ...anywhere]);
  }
  return chosen;
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
  const at = (choice: readonly number[], ids: Iterable<string>): number =>
    [...ids].filter((id) => nodesOf(devices.get(id)).some((node) => choice.includes(node))).length;
  let fewest = numaNodes.length;
  const possible: number[][] = [];
  for (const choice of choicesOf(numaNodes)) {
    if (at(choice, devices.keys()) >= count) fewest = Math.min(fewest, choice.length);
    const reused = at(choice, counted.reusable);
    if (reused < counted.reusable.length) continue;
    const fresh = counted.available.filter((id) => !counted.reusable.includes(id));
    if (reused + at(choice, fresh) >= count) possible.push(choice);
  }
  return possible.map((choice) => ({ nodes: choice, preferred: choice.length === fewest }));
}
