import type {
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PersistentVolume,
  VolumeNodeAffinity,
} from "../objects/schema/kinds/core/v1.ts";

/** In-tree plugin → zone label of the CSI driver that replaces it. */
const zoneKeys: Readonly<Record<string, string>> = {
  "kubernetes.io/aws-ebs": "topology.ebs.csi.aws.com/zone",
  "kubernetes.io/gce-pd": "topology.gke.io/zone",
  "kubernetes.io/cinder": "topology.cinder.csi.openstack.org/zone",
};

/** Current and beta zone and region labels. */
const places = {
  now: { zone: "topology.kubernetes.io/zone", region: "topology.kubernetes.io/region" },
  beta: { zone: "failure-domain.beta.kubernetes.io/zone", region: "failure-domain.beta.kubernetes.io/region" },
} as const;

/**
 * Node affinity of a migrated in-tree volume with the topology labels of the CSI driver. Without zones in the node
 * affinity, these are taken from the volume's labels, where `__` separates several zones.
 * Source: staging/src/k8s.io/csi-translation-lib/plugins/in_tree_volume.go translateTopologyFromInTreeToCSI
 */
export function csiNodeAffinity({ metadata, spec }: PersistentVolume, plugin: string): VolumeNodeAffinity | undefined {
  const zoneKey = zoneKeys[plugin];
  const { nodeAffinity } = spec;
  if (zoneKey === undefined) return nodeAffinity;
  const { labels = {} } = metadata;
  const terms = nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const valuesOf = (key: string): string[] =>
    terms
      .flatMap(({ matchExpressions = [] }) => matchExpressions.filter((one) => one.key === key))
      .flatMap(({ values = [] }) => values);
  const names = (key: string): boolean =>
    terms.some(({ matchExpressions = [] }) => matchExpressions.some((one) => one.key === key));
  const { now, beta } = places;
  const isNow = names(now.zone) || (!names(beta.zone) && (Object.hasOwn(labels, now.zone) || !Object.hasOwn(labels, beta.zone)));
  const { zone, region } = isNow ? now : beta;

  const inRegion = isNow ? terms : renamed(terms, region, now.region);
  if (valuesOf(zone).length > 0) return { required: { nodeSelectorTerms: renamed(inRegion, zone, zoneKey) } };
  const zones = (labels[zone] ?? "").split("__").map((one) => one.trim());
  const values = [...new Set(zones)].filter((one) => one !== "").sort();
  if (values.length === 0) return nodeAffinity && { required: { nodeSelectorTerms: inRegion } };
  const wanted: NodeSelectorRequirement = { key: zoneKey, operator: "In", values };
  const extended = (inRegion.length === 0 ? [{}] : inRegion).map((term: NodeSelectorTerm) => ({
    ...term,
    matchExpressions: [...(term.matchExpressions ?? []), wanted],
  }));
  return { required: { nodeSelectorTerms: extended } };
}

function renamed(terms: readonly NodeSelectorTerm[], from: string, to: string): NodeSelectorTerm[] {
  return terms.map(({ matchExpressions, ...rest }) => ({
    ...rest,
    ...(matchExpressions && { matchExpressions: matchExpressions.map((one) => (one.key === from ? { ...one, key: to } : one)) }),
  }));
}
