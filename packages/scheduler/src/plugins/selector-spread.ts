import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { readState } from "../framework/cycle-state.ts";
import { maxNodeScore, type Plugin } from "../framework/extension-points.ts";
import { newDefaultSelector } from "./default-selector.ts";
import type { PluginContext } from "./plugin-context.ts";
import { countMatching } from "./topology-counts.ts";

/** Weight of the zone score on nodes with a zone label; the node score has the rest. */
const zoneShare = 2 / 3;
const stateKey = "PreScoreSelectorSpread";

/**
 * Spreads the pods of a service or controller over nodes and zones; superseded by PodTopologySpread's default
 * constraints. Ignores pods with topology spread constraints.
 * Source: pkg/scheduler/framework/plugins/selectorspread
 */
export function newSelectorSpread({ informers }: Pick<PluginContext, "informers">): Plugin {
  const selectorOf = newDefaultSelector(informers);
  const isSpreadOtherwise = (constraints: readonly unknown[] | undefined): boolean => (constraints ?? []).length > 0;
  return {
    name: "SelectorSpread",
    preScore(state, { pod }) {
      if (!isSpreadOtherwise(pod.spec.topologySpreadConstraints)) state.set(stateKey, selectorOf(pod));
      return undefined;
    },
    score(state, { pod }, info) {
      if (isSpreadOtherwise(pod.spec.topologySpreadConstraints)) return 0;
      const selector = readState<LabelSelector>(state, stateKey);
      return selector.empty ? 0 : countMatching(info, selector, pod.metadata.namespace);
    },
    normalize(_, { pod }, scores, nodes) {
      if (isSpreadOtherwise(pod.spec.topologySpreadConstraints)) return;
      const zones = nodes.map(({ node }) => zoneOf(node));
      const byZone = new Map<string, number>();
      for (const [i, zone] of zones.entries()) if (zone !== "") byZone.set(zone, (byZone.get(zone) ?? 0) + scores[i]!);
      const mostOnNode = scores.reduce((most, score) => Math.max(most, score), 0);
      const mostInZone = [...byZone.values()].reduce((most, score) => Math.max(most, score), 0);
      for (const [i, score] of scores.entries()) {
        const zone = zones[i] ?? "";
        const ofNode = freedom(score, mostOnNode);
        const ofZone = freedom(byZone.get(zone) ?? 0, mostInZone);
        scores[i] = Math.trunc(zone === "" ? ofNode : ofNode * (1 - zoneShare) + zoneShare * ofZone);
      }
    },
  };
}

const freedom = (count: number, most: number): number => (most > 0 ? maxNodeScore * ((most - count) / most) : maxNodeScore);

/** Region and zone; `""` for a node without these labels. Source: pkg/util/node GetZoneKey */
function zoneOf({ metadata: { labels = {} } }: Node): string {
  const region = labels["failure-domain.beta.kubernetes.io/region"] ?? labels["topology.kubernetes.io/region"] ?? "";
  const zone = labels["failure-domain.beta.kubernetes.io/zone"] ?? labels["topology.kubernetes.io/zone"] ?? "";
  return region === "" && zone === "" ? "" : `${region}:\u{0}:${zone}`;
}
