/**
 * Zone labels of volumes of cloud providers, and the node affinity that follows from them. No cloud is built in here: a
 * volume of one that was provisioned with its labels keeps them, another one cannot be looked up and is refused.
 * Source: plugin/pkg/admission/storage/persistentvolume/label/admission.go
 */
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type {
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PersistentVolumeSpec,
} from "@coxswain/apimachinery/schema/kinds/core/v1";
import { refuse } from "../errors.ts";
import type { AdmissionPlugin } from "../plugin.ts";

interface VolumeObject extends KubeObject {
  spec?: PersistentVolumeSpec;
}

const provisionedBy = "pv.kubernetes.io/provisioned-by";
const topologyLabels = [
  ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"],
  ["failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"],
] as const;

export const persistentVolumeLabel = (): AdmissionPlugin => ({
  name: "PersistentVolumeLabel",
  handles: (operation) => operation === "CREATE",
  async admit(attributes) {
    const { resource, subresource, object } = attributes;
    if (resource.group !== "" || resource.resource !== "persistentvolumes" || subresource !== "") return;
    const volume = object as VolumeObject;
    const cloud = cloudOf(volume.spec);
    if (volume.spec === undefined || cloud === undefined) return;
    const labels = volume.metadata.labels ?? {};
    const names = topologyLabels.find((pair) => pair.every((name) => Object.hasOwn(labels, name)));
    if (names === undefined || !Object.hasOwn(volume.metadata.annotations ?? {}, provisionedBy)) {
      throw refuse(attributes, `error querying ${cloud.what} volume ${cloud.id}: unable to build ${cloud.provider}`);
    }
    addAffinity(
      volume.spec,
      names.map((key) => ({ key, operator: "In", values: zonesOf(labels[key] ?? "") })),
    );
  },
});

function cloudOf(spec: PersistentVolumeSpec | undefined): { what: string; id: string; provider: string } | undefined {
  if (spec?.awsElasticBlockStore) {
    return { what: "AWS EBS", id: spec.awsElasticBlockStore.volumeID, provider: "AWS cloud provider for EBS" };
  }
  if (spec?.gcePersistentDisk)
    return { what: "GCE PD", id: spec.gcePersistentDisk.pdName, provider: "GCE cloud provider for PD" };
  if (spec?.azureDisk) return { what: "AzureDisk", id: spec.azureDisk.diskName, provider: "Azure cloud provider for AzureDisk" };
  return undefined;
}

/** Several zones stand in one label: `a__b`. */
function zonesOf(label: string): string[] {
  return [...new Set(label.split("__"))].sort();
}

/** Terms are alternatives: each gets every requirement that it does not have for its key. */
function addAffinity(spec: PersistentVolumeSpec, requirements: readonly NodeSelectorRequirement[]): void {
  const had: readonly NodeSelectorTerm[] = spec.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const terms = (had.length === 0 ? [{}] : had).map((term: NodeSelectorTerm) => {
    const own = term.matchExpressions ?? [];
    const missing = requirements.filter(({ key }) => !own.some((other) => other.key === key));
    return { ...term, matchExpressions: [...own, ...missing] };
  });
  if (semanticEqual(had, terms)) return;
  spec.nodeAffinity = { required: { nodeSelectorTerms: terms } };
}
