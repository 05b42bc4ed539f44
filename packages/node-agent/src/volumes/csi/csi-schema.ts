import { newMessageCodec } from "../../runtime/messages.ts";

/** Wire format of the CSI node service (`csi.v1`), reduced to the fields that the kubelet uses. Source: CSI spec, csi.proto */
export const csiMessages = newMessageCodec({
  BlockVolume: {},
  MountVolume: { fsType: [1, "string"], mountFlags: [2, "string[]"], volumeMountGroup: [3, "string"] },
  AccessMode: { mode: [1, "int32"] },
  VolumeCapability: { block: [1, "BlockVolume"], mount: [2, "MountVolume"], accessMode: [3, "AccessMode"] },
  NodeStageVolumeRequest: {
    volumeId: [1, "string"],
    publishContext: [2, "map"],
    stagingTargetPath: [3, "string"],
    volumeCapability: [4, "VolumeCapability"],
    secrets: [5, "map"],
    volumeContext: [6, "map"],
  },
  NodeStageVolumeResponse: {},
  NodeUnstageVolumeRequest: { volumeId: [1, "string"], stagingTargetPath: [2, "string"] },
  NodeUnstageVolumeResponse: {},
  NodePublishVolumeRequest: {
    volumeId: [1, "string"],
    publishContext: [2, "map"],
    stagingTargetPath: [3, "string"],
    targetPath: [4, "string"],
    volumeCapability: [5, "VolumeCapability"],
    readonly: [6, "bool"],
    secrets: [7, "map"],
    volumeContext: [8, "map"],
  },
  NodePublishVolumeResponse: {},
  NodeUnpublishVolumeRequest: { volumeId: [1, "string"], targetPath: [2, "string"] },
  NodeUnpublishVolumeResponse: {},
  NodeGetVolumeStatsRequest: { volumeId: [1, "string"], volumePath: [2, "string"], stagingTargetPath: [3, "string"] },
  VolumeUsage: { available: [1, "int64"], total: [2, "int64"], used: [3, "int64"], unit: [4, "int32"] },
  VolumeCondition: { abnormal: [1, "bool"], message: [2, "string"] },
  NodeGetVolumeStatsResponse: { usage: [1, "VolumeUsage[]"], volumeCondition: [2, "VolumeCondition"] },
  CapacityRange: { requiredBytes: [1, "int64"], limitBytes: [2, "int64"] },
  NodeExpandVolumeRequest: {
    volumeId: [1, "string"],
    volumePath: [2, "string"],
    capacityRange: [3, "CapacityRange"],
    stagingTargetPath: [4, "string"],
    volumeCapability: [5, "VolumeCapability"],
  },
  NodeExpandVolumeResponse: { capacityBytes: [1, "int64"] },
  NodeGetCapabilitiesRequest: {},
  RPC: { type: [1, "int32"] },
  NodeServiceCapability: { rpc: [1, "RPC"] },
  NodeGetCapabilitiesResponse: { capabilities: [1, "NodeServiceCapability[]"] },
  NodeGetInfoRequest: {},
  Topology: { segments: [1, "map"] },
  NodeGetInfoResponse: { nodeId: [1, "string"], maxVolumesPerNode: [2, "int64"], accessibleTopology: [3, "Topology"] },
});

export const csiNodeService = "/csi.v1.Node";

/** Node service capabilities and their numbers in the protocol. */
export const nodeCapabilities = {
  stageUnstage: 1,
  volumeStats: 2,
  expand: 3,
  condition: 4,
  singleNodeMultiWriter: 5,
  mountGroup: 6,
} as const;
export type NodeCapability = keyof typeof nodeCapabilities;

const accessModes: Readonly<Record<string, number>> = { ReadWriteOnce: 1, ReadOnlyMany: 3, ReadWriteMany: 5 };
/** Access modes for drivers with the capability SINGLE_NODE_MULTI_WRITER. */
const finerModes: Readonly<Record<string, number>> = { ...accessModes, ReadWriteOnce: 7, ReadWriteOncePod: 6 };

/**
 * The CSI access mode for a Kubernetes access mode; 0 when unknown.
 * @param finer whether the driver distinguishes one writer per node from several (SINGLE_NODE_MULTI_WRITER)
 */
export function accessModeNumber(mode: string, finer: boolean): number {
  return (finer ? finerModes : { ...accessModes, ReadWriteOncePod: 1 })[mode] ?? 0;
}

export const usageUnit = { bytes: 1, inodes: 2 } as const;
