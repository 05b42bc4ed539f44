import type { AttachedVolume, Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { VolumeWaits } from "./volume.ts";

/**
 * A disk that has to be attached to this node is used only when the controller knows that it is in use, and says that it
 * is attached: so it is never taken away while it is mounted.
 * @param node as the API server has it
 * @param id as the node's status lists it
 * @throws VolumeWaits
 * Source: pkg/volume/util/operationexecutor GenerateVerifyControllerAttachedVolumeFunc
 */
export function attachedHere(node: Node | undefined, id: string): AttachedVolume {
  const { volumesInUse = [], volumesAttached = [] } = node?.status ?? {};
  if (!volumesInUse.includes(id)) {
    throw new VolumeWaits("Volume has not been added to the list of VolumesInUse in the node's volume status");
  }
  const attached = volumesAttached.find((volume) => volume.name === id);
  if (attached === undefined) throw new VolumeWaits("Volume not attached according to node status");
  return attached;
}
