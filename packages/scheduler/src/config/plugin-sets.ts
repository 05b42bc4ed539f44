import { keysOf, tableOf } from "@coxswain/apimachinery/process/narrowing/keys";
import { type ExtensionPoint, extensionPoints } from "../framework/extension-points.ts";
import names from "./default-plugins.json" with { type: "json" };

/** A plugin in a configuration; weight 0 means unset. */
interface PluginRef {
  readonly name: string;
  readonly weight: number;
}

export interface PluginSet {
  readonly enabled: readonly PluginRef[];
  readonly disabled: readonly PluginRef[];
}

/** `multiPoint` enables a plugin at all extension points that it implements. */
export type PluginPoint = ExtensionPoint | "multiPoint";
export type PluginSets = Readonly<Record<PluginPoint, PluginSet>>;

export const pluginPoints: readonly PluginPoint[] = [...keysOf(extensionPoints), "multiPoint"];

export const emptyPluginSet: PluginSet = { enabled: [], disabled: [] };

/** Names of all plugins enabled at any extension point. */
export function pluginNames(sets: PluginSets): ReadonlySet<string> {
  return new Set(pluginPoints.flatMap((point) => sets[point].enabled.map(({ name }) => name)));
}

/** Merges a profile's sets into the defaults: drops disabled plugins, replaces configured ones in place, appends new ones. */
export function mergePluginSets(version: ConfigVersion, defaults: PluginSets, custom: Partial<PluginSets>): PluginSets {
  const merge = (point: PluginPoint): PluginSet => {
    if (version === "v1beta3") return mergeSet(defaults[point], custom[point]);
    // v1beta2 accepts `multiPoint` but ignores it. Without it, `disabled` has no further effect after the merge.
    return point === "multiPoint" ? emptyPluginSet : { ...mergeSet(defaults[point], custom[point]), disabled: [] };
  };
  return tableOf(pluginPoints, merge);
}

/** Source: pkg/scheduler/apis/config/v1beta3/default_plugins.go mergePluginSet */
function mergeSet(defaults: PluginSet, custom: PluginSet = emptyPluginSet): PluginSet {
  const disabled = [...custom.disabled, ...defaults.disabled].map(({ name }) => ({ name, weight: 0 }));
  const isDisabled = new Set(disabled.map(({ name }) => name));
  const enabled: PluginRef[] = [];
  const placed = new Set<PluginRef>();
  if (!isDisabled.has("*")) {
    for (const plugin of defaults.enabled) {
      if (isDisabled.has(plugin.name)) continue;
      const own = custom.enabled.findLast(({ name }) => name === plugin.name);
      if (own !== undefined) placed.add(own);
      enabled.push(own ?? plugin);
    }
  }
  return { enabled: [...enabled, ...custom.enabled.filter((plugin) => !placed.has(plugin))], disabled };
}

const ref = (name: string): PluginRef => {
  const [plugin = "", weight = "0"] = name.split(":");
  return { name: plugin, weight: Number(weight) };
};

function pluginSets(enabled: Partial<Record<PluginPoint, readonly string[]>>): PluginSets {
  return tableOf(pluginPoints, (point) => ({ enabled: (enabled[point] ?? []).map(ref), disabled: [] }));
}

export type ConfigVersion = "v1beta2" | "v1beta3";

/** Default plugins by configuration version, as `name:weight`. Source: pkg/scheduler/apis/config/<version>/default_plugins.go */
const defaultPlugins: Readonly<Record<ConfigVersion, PluginSets>> = {
  v1beta3: pluginSets(names.v1beta3),
  v1beta2: pluginSets(names.v1beta2),
};

/** Feature gates that change the default plugins. */
export interface DefaultsByGate {
  /** DefaultPodTopologySpread, on by default: when off, SelectorSpread spreads the pods of a service. */
  readonly spreadByTopology?: boolean;
  /** VolumeCapacityPriority, off by default: VolumeBinding also scores. In v1beta3 `multiPoint` includes it already. */
  readonly byVolumeCapacity?: boolean;
}

/** The default plugins of a configuration version, adapted to feature gates. */
export function defaultPluginSets(
  version: ConfigVersion,
  { spreadByTopology = true, byVolumeCapacity = false }: DefaultsByGate = {},
): PluginSets {
  const own = defaultPlugins[version];
  const scored = [...own.score.enabled, { name: "VolumeBinding", weight: 1 }];
  const sets = byVolumeCapacity && version === "v1beta2" ? { ...own, score: { enabled: scored, disabled: [] } } : own;
  if (spreadByTopology) return sets;
  const with_ = (point: PluginPoint, weight: number): Partial<PluginSets> => ({
    [point]: { enabled: [...sets[point].enabled, { name: "SelectorSpread", weight }], disabled: [] },
  });
  return version === "v1beta3"
    ? { ...sets, ...with_("multiPoint", 1) }
    : { ...sets, ...with_("preScore", 0), ...with_("score", 1) };
}
