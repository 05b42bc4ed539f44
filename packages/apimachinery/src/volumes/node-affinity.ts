import type { PersistentVolume } from "../objects/schema/kinds/core/v1.ts";
import { matchesTerm } from "../scheduling/node-selector.ts";

/** True when a volume's node affinity matches the node labels. Source: pkg/volume/util CheckNodeAffinity */
export function fitsNode(volume: PersistentVolume, labels: Readonly<Record<string, string>>): boolean {
  const required = volume.spec.nodeAffinity?.required;
  return required === undefined || required.nodeSelectorTerms.some((term) => matchesTerm(term, { metadata: { labels } }));
}
