import assert from "node:assert/strict";
import { test } from "node:test";
import protobuf from "protobufjs";
import { pluginMessages } from "../resources/devices/plugin-schema.ts";
import type { MessageCodec } from "../runtime/messages.ts";
import { podResourcesMessages } from "../server/pod-resources.ts";
import { accessModeNumber, csiMessages, nodeCapabilities } from "../volumes/csi/csi-schema.ts";
import { registrationMessages } from "./registration-schema.ts";

/** Encodes a message with a codec and reads it by the definition of its protocol, and the other way round. */
function bothWays<M>(codec: MessageCodec<M>, proto: string, name: keyof M & string, message: object): void {
  const type = protobuf.parse(`syntax = "proto3"; ${proto}`, { keepCase: true }).root.lookupType(name);
  const encoded = codec.encode(name, message as Parameters<typeof codec.encode>[1]); // cast: the messages below are of their types
  const read = type.toObject(type.decode(encoded), { longs: Number });
  assert.deepEqual(JSON.parse(JSON.stringify(read)), message, `${name}, written here`);
  const back = codec.decode(name, type.encode(type.fromObject(message)).finish());
  assert.partialDeepStrictEqual(back, message, `${name}, read here`);
}

/** Source: CSI specification 1.5, csi.proto */
const csi = `
message AccessMode { int32 mode = 1; }
message BlockVolume {}
message MountVolume { string fsType = 1; repeated string mountFlags = 2; string volumeMountGroup = 3; }
message VolumeCapability { BlockVolume block = 1; MountVolume mount = 2; AccessMode accessMode = 3; }
message NodeStageVolumeRequest { string volumeId = 1; map<string, string> publishContext = 2; string stagingTargetPath = 3;
  VolumeCapability volumeCapability = 4; map<string, string> secrets = 5; map<string, string> volumeContext = 6; }
message NodeUnstageVolumeRequest { string volumeId = 1; string stagingTargetPath = 2; }
message NodePublishVolumeRequest { string volumeId = 1; map<string, string> publishContext = 2; string stagingTargetPath = 3;
  string targetPath = 4; VolumeCapability volumeCapability = 5; bool readonly = 6; map<string, string> secrets = 7;
  map<string, string> volumeContext = 8; }
message NodeUnpublishVolumeRequest { string volumeId = 1; string targetPath = 2; }
message NodeGetVolumeStatsRequest { string volumeId = 1; string volumePath = 2; string stagingTargetPath = 3; }
message VolumeUsage { int64 available = 1; int64 total = 2; int64 used = 3; int32 unit = 4; }
message VolumeCondition { bool abnormal = 1; string message = 2; }
message NodeGetVolumeStatsResponse { repeated VolumeUsage usage = 1; VolumeCondition volumeCondition = 2; }
message CapacityRange { int64 requiredBytes = 1; int64 limitBytes = 2; }
message NodeExpandVolumeRequest { string volumeId = 1; string volumePath = 2; CapacityRange capacityRange = 3;
  string stagingTargetPath = 4; VolumeCapability volumeCapability = 5; }
message NodeExpandVolumeResponse { int64 capacityBytes = 1; }
message RPC { int32 type = 1; }
message NodeServiceCapability { RPC rpc = 1; }
message NodeGetCapabilitiesResponse { repeated NodeServiceCapability capabilities = 1; }
message Topology { map<string, string> segments = 1; }
message NodeGetInfoResponse { string nodeId = 1; int64 maxVolumesPerNode = 2; Topology accessibleTopology = 3; }
`;

test("messages of CSI's node service are those of its specification", () => {
  const mount = { fsType: "xfs", mountFlags: ["a", "b"], volumeMountGroup: "7" };
  const volumeCapability = { mount, accessMode: { mode: 5 } };
  const staging = { volumeId: "v", publishContext: { p: "1" }, stagingTargetPath: "/s", volumeCapability, secrets: { s: "2" } };
  const volumeContext = { c: "3" };
  bothWays(csiMessages, csi, "NodeStageVolumeRequest", { ...staging, volumeContext });
  bothWays(csiMessages, csi, "NodePublishVolumeRequest", { ...staging, targetPath: "/t", readonly: true, volumeContext });
  bothWays(csiMessages, csi, "VolumeCapability", { block: {} });
  bothWays(csiMessages, csi, "NodeUnstageVolumeRequest", { volumeId: "v", stagingTargetPath: "/s" });
  bothWays(csiMessages, csi, "NodeUnpublishVolumeRequest", { volumeId: "v", targetPath: "/t" });
  bothWays(csiMessages, csi, "NodeGetVolumeStatsRequest", { volumeId: "v", volumePath: "/p", stagingTargetPath: "/s" });
  bothWays(csiMessages, csi, "NodeGetVolumeStatsResponse", {
    usage: [
      { available: 1, total: 2, used: 3, unit: 1 },
      { available: 4, total: 5, used: 6, unit: 2 },
    ],
    volumeCondition: { abnormal: true, message: "m" },
  });
  bothWays(csiMessages, csi, "NodeExpandVolumeRequest", {
    volumeId: "v",
    volumePath: "/p",
    capacityRange: { requiredBytes: 1, limitBytes: 2 },
    stagingTargetPath: "/s",
    volumeCapability,
  });
  bothWays(csiMessages, csi, "NodeExpandVolumeResponse", { capacityBytes: 9 });
  bothWays(csiMessages, csi, "NodeGetCapabilitiesResponse", { capabilities: [{ rpc: { type: 6 } }] });
  const accessibleTopology = { segments: { zone: "a" } };
  bothWays(csiMessages, csi, "NodeGetInfoResponse", { nodeId: "n", maxVolumesPerNode: 8, accessibleTopology });
});

test("access modes have the numbers of CSI, by whether a driver tells one writer of a node from several", () => {
  const modes = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod", "Other"];
  const numbers = [false, true].map((finer) => modes.map((mode) => accessModeNumber(mode, finer)));
  assert.deepEqual(numbers, [
    [1, 3, 5, 1, 0],
    [7, 3, 5, 6, 0],
  ]);
});

/** Source: k8s.io/kubelet pkg/apis/deviceplugin/v1beta1/api.proto */
const devices = `
message DevicePluginOptions { bool preStartRequired = 1; bool getPreferredAllocationAvailable = 2; }
message RegisterRequest { string version = 1; string endpoint = 2; string resourceName = 3; DevicePluginOptions options = 4; }
message NUMANode { int64 ID = 1; }
message TopologyInfo { repeated NUMANode nodes = 1; }
message Device { string ID = 1; string health = 2; TopologyInfo topology = 3; }
message ListAndWatchResponse { repeated Device devices = 1; }
message PreStartContainerRequest { repeated string devicesIDs = 1; }
message ContainerPreferredAllocationRequest { repeated string availableDeviceIDs = 1; repeated string mustIncludeDeviceIDs = 2;
  int32 allocationSize = 3; }
message PreferredAllocationRequest { repeated ContainerPreferredAllocationRequest containerRequests = 1; }
message ContainerPreferredAllocationResponse { repeated string deviceIDs = 1; }
message PreferredAllocationResponse { repeated ContainerPreferredAllocationResponse containerResponses = 1; }
message ContainerAllocateRequest { repeated string devicesIDs = 1; }
message AllocateRequest { repeated ContainerAllocateRequest containerRequests = 1; }
message Mount { string containerPath = 1; string hostPath = 2; bool readOnly = 3; }
message DeviceSpec { string containerPath = 1; string hostPath = 2; string permissions = 3; }
message ContainerAllocateResponse { map<string, string> envs = 1; repeated Mount mounts = 2; repeated DeviceSpec devices = 3;
  map<string, string> annotations = 4; }
message AllocateResponse { repeated ContainerAllocateResponse containerResponses = 1; }
`;

test("messages of device plugins are those of their API", () => {
  const options = { preStartRequired: true, getPreferredAllocationAvailable: true };
  bothWays(pluginMessages, devices, "RegisterRequest", { version: "v", endpoint: "e", resourceName: "r", options });
  const topology = { nodes: [{ ID: 1 }] };
  bothWays(pluginMessages, devices, "ListAndWatchResponse", { devices: [{ ID: "d", health: "Healthy", topology }] });
  bothWays(pluginMessages, devices, "PreStartContainerRequest", { devicesIDs: ["a", "b"] });
  const containerRequests = [{ availableDeviceIDs: ["a", "b"], mustIncludeDeviceIDs: ["a"], allocationSize: 2 }];
  bothWays(pluginMessages, devices, "PreferredAllocationRequest", { containerRequests });
  bothWays(pluginMessages, devices, "PreferredAllocationResponse", { containerResponses: [{ deviceIDs: ["a"] }] });
  bothWays(pluginMessages, devices, "AllocateRequest", { containerRequests: [{ devicesIDs: ["a"] }] });
  const given = {
    envs: { A: "1" },
    mounts: [{ containerPath: "/c", hostPath: "/h", readOnly: true }],
    devices: [{ containerPath: "/dev/c", hostPath: "/dev/h", permissions: "rw" }],
    annotations: { b: "2" },
  };
  bothWays(pluginMessages, devices, "AllocateResponse", { containerResponses: [given] });
});

/** Source: k8s.io/kubelet pkg/apis/podresources/v1/api.proto */
const resources = `
message NUMANode { int64 ID = 1; }
message TopologyInfo { repeated NUMANode nodes = 1; }
message ContainerDevices { string resourceName = 1; repeated string deviceIds = 2; TopologyInfo topology = 3; }
message ContainerMemory { string memoryType = 1; uint64 size = 2; TopologyInfo topology = 3; }
message ContainerResources { string name = 1; repeated ContainerDevices devices = 2; repeated int64 cpuIds = 3;
  repeated ContainerMemory memory = 4; }
message PodResources { string name = 1; string namespace = 2; repeated ContainerResources containers = 3; }
message ListPodResourcesResponse { repeated PodResources podResources = 1; }
message AllocatableResourcesResponse { repeated ContainerDevices devices = 1; repeated int64 cpuIds = 2;
  repeated ContainerMemory memory = 3; }
`;

test("messages of the pod resources API are those of its version 1", () => {
  const topology = { nodes: [{ ID: 1 }] };
  const parts = {
    devices: [{ resourceName: "r", deviceIds: ["a", "b"], topology }],
    cpuIds: [1, 2],
    memory: [{ memoryType: "memory", size: 3, topology }],
  };
  const podResources = [{ name: "p", namespace: "n", containers: [{ name: "c", ...parts }] }];
  bothWays(podResourcesMessages, resources, "ListPodResourcesResponse", { podResources });
  bothWays(podResourcesMessages, resources, "AllocatableResourcesResponse", parts);
});

test("capabilities of CSI nodes have the numbers of its version 1", () => {
  assert.deepEqual(nodeCapabilities, {
    stageUnstage: 1,
    volumeStats: 2,
    expand: 3,
    condition: 4,
    singleNodeMultiWriter: 5,
    mountGroup: 6,
  });
});

/** Source: k8s.io/kubelet pkg/apis/pluginregistration/v1/api.proto */
const registration = `
message PluginInfo { string type = 1; string name = 2; string endpoint = 3; repeated string supportedVersions = 4; }
message RegistrationStatus { bool pluginRegistered = 1; string error = 2; }
`;

test("messages of the registration of plugins are those of its version 1", () => {
  const info = { type: "CSIPlugin", name: "n", endpoint: "/e", supportedVersions: ["1.0.0"] };
  bothWays(registrationMessages, registration, "PluginInfo", info);
  bothWays(registrationMessages, registration, "RegistrationStatus", { pluginRegistered: true, error: "e" });
});
