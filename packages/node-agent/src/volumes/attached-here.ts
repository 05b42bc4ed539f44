import type { AttachedVolume, Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { VolumeWaits } from "./volume.ts";

/**
 * The attached volume from the node's status. A volume is used only when the status lists it both as in use and as
 * attached: otherwise the attach/detach controller could detach it while it is mounted.
 * @param node as stored in the API server
 * @param id as listed in the node's status
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
