/**
 * Adds node affinity to dynamically provisioned volumes according to their zone and region labels. Other volumes of clouds
 * are rejected, because querying their zones requires a cloud provider, as in an upstream build without in-tree providers.
 * Source: plugin/pkg/admission/storage/persistentvolume/label/admission.go
 */
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type {
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PersistentVolumeSpec,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { refuse } from "../errors.ts";
import type { AdmissionPlugin } from "../plugin.ts";

interface VolumeObject extends KubeObject {
  spec?: PersistentVolumeSpec;
}

const provisionedBy = "pv.kubernetes.io/provisioned-by";
/** ID of a volume that is still being provisioned. */
const placeholder = "placeholder-for-provisioning";
const topologyLabels = [
  { zone: "topology.kubernetes.io/zone", region: "topology.kubernetes.io/region" },
  { zone: "failure-domain.beta.kubernetes.io/zone", region: "failure-domain.beta.kubernetes.io/region" },
] as const;

export const persistentVolumeLabel = (): AdmissionPlugin<VolumeObject> => ({
  name: "PersistentVolumeLabel",
  handles: (operation) => operation === "CREATE",
  async admit(attributes) {
    const { resource, subresource, object } = attributes;
    if (resource.group !== "" || resource.resource !== "persistentvolumes" || subresource !== "") return;
    const volume = object!;
    if (volume.spec === undefined) return;
    const labels = volume.metadata.labels ?? {};
    const names = topologyLabels.find(({ zone, region }) => Object.hasOwn(labels, zone) && Object.hasOwn(labels, region));
    if (names !== undefined && Object.hasOwn(volume.metadata.annotations ?? {}, provisionedBy)) {
      const zones = zonesOf(labels[names.zone]!);
      if (zones === undefined) {
        throw refuse(attributes, `failed to convert label string for Zone: ${labels[names.zone]} to a Set`);
      }
      addAffinity(volume.spec, [
        { key: names.zone, operator: "In", values: zones },
        { key: names.region, operator: "In", values: [labels[names.region]!] },
      ]);
      return;
    }
    const cloud = cloudOf(volume.spec);
    if (cloud !== undefined) {
      throw refuse(attributes, `error querying ${cloud.what} ${cloud.id}: unable to build ${cloud.provider}`);
    }
  },
});

/** @returns undefined for volumes that belong to no cloud or are still being provisioned. */
function cloudOf(spec: PersistentVolumeSpec): { what: string; id: string; provider: string } | undefined {
  const { awsElasticBlockStore, gcePersistentDisk, azureDisk, vsphereVolume } = spec;
  if (awsElasticBlockStore) {
    return unlessPlaceholder("AWS EBS volume", awsElasticBlockStore.volumeID, "AWS cloud provider for EBS");
  }
  if (gcePersistentDisk) return unlessPlaceholder("GCE PD volume", gcePersistentDisk.pdName, "GCE cloud provider for PD");
  if (azureDisk) return unlessPlaceholder("AzureDisk volume", azureDisk.diskName, "Azure cloud provider for AzureDisk");
  // Upstream has no placeholder check for vSphere.
  if (vsphereVolume) return { what: "vSphere Volume", id: vsphereVolume.volumePath, provider: "vSphere cloud provider" };
  return undefined;
}

function unlessPlaceholder(what: string, id: string, provider: string) {
  return id === placeholder ? undefined : { what, id, provider };
}

/** A label holds several zones as `a__b`. @returns undefined when one of them is empty. */
function zonesOf(label: string): string[] | undefined {
  const zones = label.split("__").map((zone) => zone.trim());
  return zones.includes("") ? undefined : [...new Set(zones)].sort();
}

/** Adds the requirements to each (ORed) term, unless a term already constrains one of the keys. */
function addAffinity(spec: PersistentVolumeSpec, requirements: readonly NodeSelectorRequirement[]): void {
  const had: readonly NodeSelectorTerm[] = spec.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const said = new Set(had.flatMap(({ matchExpressions = [] }) => matchExpressions.map(({ key }) => key)));
  if (requirements.some(({ key }) => said.has(key))) return;
  const terms = (had.length === 0 ? [{}] : had).map((term: NodeSelectorTerm) => ({
    ...term,
    matchExpressions: [...(term.matchExpressions ?? []), ...requirements],
  }));
  spec.nodeAffinity = { required: { nodeSelectorTerms: terms } };
}
