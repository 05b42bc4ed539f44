import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { claimNameOf, notMadeFor } from "@coxswain/apimachinery/volumes/claims-of-pod";
import { fitsNode } from "@coxswain/apimachinery/volumes/node-affinity";
import { containersOf, type NodePod } from "../pod/pod.ts";
import { checkHostPath } from "./host-path.ts";
import { filesystemSize } from "./measure.ts";
import { setVolumeOwnership } from "./ownership.ts";
import { ClaimError, type SetUpVolume, VolumeError } from "./volume.ts";
import { annotatedGroup } from "./volume-groups.ts";
import { pluginOf } from "./volume-operations.ts";
import type { VolumeContext, VolumePlugin } from "./volume-plugin.ts";

/**
 * The volume bound to a claim: a local path (hostPath, local), a CSI volume or a FlexVolume.
 * Source: pkg/kubelet/volumemanager/populator
 */
export const persistentClaim: VolumePlugin = {
  name: "kubernetes.io~local-volume",
  delegates: true,
  supports: (volume) => volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined,
  async setUp(context) {
    const { pod, volume } = context;
    const { claim, bound } = await findVolume(context).catch((err: Error) => {
      const name = `${pod.metadata.namespace}/${claimNameOf(pod, volume)}`;
      throw new ClaimError(`error processing PVC ${name}: ${err.message}`, { cause: err });
    });
    const misused = misuse(pod, volume.name, bound.spec.volumeMode ?? "Filesystem");
    if (misused !== undefined) throw new ClaimError(misused);
    return context.observed(pluginOf(bound.spec), () => provide(context, claim, bound));
  },
};

async function provide(context: VolumeContext, claim: PersistentVolumeClaim, bound: PersistentVolume): Promise<SetUpVolume> {
  const { pod, volume, csi, flex, nodeLabels } = context;
  const readOnly = volume.persistentVolumeClaim?.readOnly ?? false;
  const labels = nodeLabels();
  const name = bound.metadata.name ?? "";
  if (labels !== undefined && !fitsNode(bound, labels)) {
    throw new VolumeError("MountVolume.NodeAffinity check failed", name, new Error("no matching NodeSelectorTerms"));
  }
  const made =
    (await csi?.persistent(pod, bound, claim, readOnly)) ??
    (await flex?.persistent(pod, bound, readOnly)) ??
    (await ofThisNode(context, bound, readOnly));
  if (made === undefined) throw new Error(`no volume plugin matched the source of persistent volume ${name}`);
  const gid = annotatedGroup(bound);
  return gid === undefined ? made : { ...made, gid };
}

/** Pure: the error when a Block volume is listed in volumeMounts, or a Filesystem volume in volumeDevices. */
function misuse(pod: NodePod, volume: string, mode: string): string | undefined {
  const uses = mode === "Block" ? "volumeMounts" : "volumeDevices";
  for (const { container } of containersOf(pod)) {
    if ((container[uses] ?? []).some(({ name }) => name === volume))
      return `volume ${volume} has volumeMode ${mode}, but is specified in ${uses}`;
  }
  return undefined;
}

async function findVolume({
  pod,
  volume,
  objects,
}: VolumeContext): Promise<{ claim: PersistentVolumeClaim; bound: PersistentVolume }> {
  const { namespace } = pod.metadata;
  const name = claimNameOf(pod, volume) ?? "";
  const claim = await objects.claim(namespace, name);
  const foreign = volume.ephemeral === undefined ? undefined : notMadeFor(pod, claim);
  if (foreign !== undefined) throw new Error(foreign);
  // Without a finalizer, the claim can disappear at any time even though a Pod uses it.
  if (claim.metadata.deletionTimestamp != null && (claim.metadata.finalizers ?? []).length === 0)
    throw new Error("PVC is being deleted");
  const volumeName = claim.spec?.volumeName ?? "";
  if (claim.status?.phase !== "Bound" || volumeName === "") throw new Error("PVC is not bound");
  const bound = await objects.persistentVolume(volumeName);
  if (bound.spec.claimRef?.uid !== claim.metadata.uid) {
    throw new Error(`failed to fetch PV ${volumeName} from API server: PV.Spec.ClaimRef does not match PVC ${namespace}/${name}`);
  }
  return { claim, bound };
}

async function ofThisNode(
  { pod, dir, isThere, operations, locals, log }: VolumeContext,
  { spec, metadata }: PersistentVolume,
  readOnly: boolean,
): Promise<SetUpVolume | undefined> {
  const { hostPath, local } = spec;
  try {
    if (hostPath !== undefined) {
      await checkHostPath(hostPath.path, hostPath.type ?? "");
      return { path: hostPath.path, readOnly };
    }
    if (local === undefined) return undefined;
    if (spec.volumeMode === "Block") {
      await checkHostPath(local.path, "BlockDevice");
      return { path: local.path, readOnly, device: true };
    }
    await checkHostPath(local.path, "Directory");
    if (!isThere) {
      const options = { readOnly: false, policy: true, plugin: pluginOf(spec), operations, log };
      await locals.use(pod, { dir, name: metadata.name ?? "", path: local.path }, async (folder) => {
        if (!readOnly) await setVolumeOwnership(folder, pod, options);
      });
    }
    return { path: local.path, readOnly, measure: () => filesystemSize(local.path) };
  } catch (err) {
    throw new VolumeError("MountVolume.SetUp failed", metadata.name ?? "", err);
  }
}
