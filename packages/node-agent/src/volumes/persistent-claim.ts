import { checkHostPath } from "./host-path.ts";
import { setVolumeOwnership } from "./ownership.ts";
import type { VolumePlugin } from "./volume.ts";

/**
 * A claim's volume, where it is a folder of this node (hostPath, local); others need a driver.
 * Source: pkg/kubelet/volumemanager/populator
 */
export const persistentClaim: VolumePlugin = {
  name: "kubernetes.io~local-volume",
  supports: (volume) => volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined,
  async setUp({ pod, volume, objects }) {
    const namespace = pod.metadata.namespace;
    const name = volume.persistentVolumeClaim?.claimName ?? `${pod.metadata.name}-${volume.name}`;
    const claim = await objects.claim(namespace, name);
    if (volume.ephemeral !== undefined) {
      const owned = (claim.metadata.ownerReferences ?? []).some(
        (owner) => owner.controller === true && owner.uid === pod.metadata.uid,
      );
      if (!owned)
        throw new Error(`PVC ${namespace}/${name} was not created for pod ${namespace}/${pod.metadata.name} (pod is not owner)`);
    }
    if (claim.metadata.deletionTimestamp != null && claim.metadata.finalizers?.length === 0)
      throw new Error("PVC is being deleted");
    const volumeName = claim.spec?.volumeName ?? "";
    if (claim.status?.phase !== "Bound" || volumeName === "") throw new Error("PVC is not bound");
    const bound = await objects.persistentVolume(volumeName);
    if (bound.spec?.claimRef?.uid !== claim.metadata.uid) {
      throw new Error(
        `failed to fetch PV ${volumeName} from API server: PV.Spec.ClaimRef does not match PVC ${namespace}/${name}`,
      );
    }
    const readOnly = volume.persistentVolumeClaim?.readOnly ?? false;
    if (bound.spec?.hostPath !== undefined) {
      await checkHostPath(bound.spec.hostPath.path, bound.spec.hostPath.type ?? "");
      return { path: bound.spec.hostPath.path, readOnly };
    }
    if (bound.spec?.local !== undefined) {
      await checkHostPath(bound.spec.local.path, "Directory");
      if (!readOnly) await setVolumeOwnership(bound.spec.local.path, pod, { readOnly: false, policy: true });
      return { path: bound.spec.local.path, readOnly };
    }
    throw new Error(`no volume plugin matched the source of persistent volume ${volumeName}`);
  },
};
