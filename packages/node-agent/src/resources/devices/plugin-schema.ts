import { newMessageCodec } from "../../runtime/messages.ts";

/** Wire format of the device plugin API `v1beta1`. Source: k8s.io/kubelet pkg/apis/deviceplugin/v1beta1 */
export const pluginMessages = newMessageCodec({
  DevicePluginOptions: { preStartRequired: [1, "bool"], getPreferredAllocationAvailable: [2, "bool"] },
  RegisterRequest: {
    version: [1, "string"],
    endpoint: [2, "string"],
    resourceName: [3, "string"],
    options: [4, "DevicePluginOptions"],
  },
  Empty: {},
  NUMANode: { ID: [1, "int64"] },
  TopologyInfo: { nodes: [1, "NUMANode[]"] },
  Device: { ID: [1, "string"], health: [2, "string"], topology: [3, "TopologyInfo"] },
  ListAndWatchResponse: { devices: [1, "Device[]"] },
  PreStartContainerRequest: { devicesIDs: [1, "string[]"] },
  PreStartContainerResponse: {},
  ContainerPreferredAllocationRequest: {
    availableDeviceIDs: [1, "string[]"],
    mustIncludeDeviceIDs: [2, "string[]"],
    allocationSize: [3, "int32"],
  },
  PreferredAllocationRequest: { containerRequests: [1, "ContainerPreferredAllocationRequest[]"] },
  ContainerPreferredAllocationResponse: { deviceIDs: [1, "string[]"] },
  PreferredAllocationResponse: { containerResponses: [1, "ContainerPreferredAllocationResponse[]"] },
  ContainerAllocateRequest: { devicesIDs: [1, "string[]"] },
  AllocateRequest: { containerRequests: [1, "ContainerAllocateRequest[]"] },
  Mount: { containerPath: [1, "string"], hostPath: [2, "string"], readOnly: [3, "bool"] },
  DeviceSpec: { containerPath: [1, "string"], hostPath: [2, "string"], permissions: [3, "string"] },
  ContainerAllocateResponse: {
    envs: [1, "map"],
    mounts: [2, "Mount[]"],
    devices: [3, "DeviceSpec[]"],
    annotations: [4, "map"],
  },
  AllocateResponse: { containerResponses: [1, "ContainerAllocateResponse[]"] },
});

export interface PluginOptions {
  preStartRequired: boolean;
  getPreferredAllocationAvailable: boolean;
}

/** A device as reported by its plugin. */
export interface PluginDevice {
  ID: string;
  health: string;
  topology: { nodes: { ID: number }[] } | null;
}

/** Settings of a container that give it access to its devices. */
export interface DeviceAccess {
  envs: Readonly<Record<string, string>>;
  mounts: readonly { containerPath: string; hostPath: string; readOnly: boolean }[];
  devices: readonly { containerPath: string; hostPath: string; permissions: string }[];
  annotations: Readonly<Record<string, string>>;
}
