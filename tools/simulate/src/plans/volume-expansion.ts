import { persistentVolumeClaims, persistentVolumes, storageClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { allFaults, lasting, namespace, type Plan } from "./plan.ts";

const resizer = "volume.kubernetes.io/storage-resizer";
const accessModes = ["ReadWriteOnce"];
const storageClassName = "growing";
const capacity = { storage: "1Gi" };
const names = ["grows", "stays"] as const;

/** Of two claims for volumes of a migrated plugin, the one that grows is handed to the CSI driver's resizer, the other one is not. */
export const volumeExpansionPlan: Plan = {
  name: "volume-expansion",
  controllers: ["persistentvolume-binder", "persistentvolume-expander"],
  apis: ["storage.k8s.io/v1"],
  faults: allFaults,
  rules: lasting,
  async act(user) {
    const metadata = { name: storageClassName };
    await user.create(storageClasses, { metadata, provisioner: "kubernetes.io/gce-pd", allowVolumeExpansion: true });
    for (const name of names) {
      await user.create(persistentVolumes, {
        metadata: { name },
        spec: { capacity, accessModes, storageClassName, gcePersistentDisk: { pdName: name }, claimRef: { namespace, name } },
      });
      await user.create(persistentVolumeClaims, {
        metadata: { name, namespace },
        spec: { accessModes, storageClassName, volumeName: name, resources: { requests: capacity } },
      });
    }
    await user.pause(user.random() * 4_000);
    // Refused, hence repeated, until the claim is bound.
    await user.change(persistentVolumeClaims, names[0], ({ spec }) => {
      spec.resources.requests.storage = "2Gi";
    });
    await user.pause(user.random() * 5_000);
  },
  missing(view) {
    const [grows, stays] = names.map((name) => view.get("persistentvolumeclaims", `${namespace}/${name}`)!);
    for (const claim of [grows, stays])
      if (claim?.status?.phase !== "Bound") return `the claim ${claim?.metadata.name} is ${claim?.status?.phase}`;
    if (stays?.metadata.annotations?.[resizer] !== undefined) return "the claim that does not grow is to be resized";
    const { [resizer]: found } = grows?.metadata.annotations ?? {};
    return found === "pd.csi.storage.gke.io" ? undefined : `the claim that grows is left to ${found}`;
  },
};
