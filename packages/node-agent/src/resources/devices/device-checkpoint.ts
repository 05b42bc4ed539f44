import { type GoType, goChecksum } from "../checkpoint-checksum.ts";
import { type CheckpointForm, corrupt } from "../checkpoint-file.ts";

/** Devices of one resource that are allocated to a container. */
export interface GivenDevices {
  podUid: string;
  container: string;
  resource: string;
  /** NUMA node (-1 for devices without topology) → device IDs. */
  byNode: ReadonlyMap<number, readonly string[]>;
  /** The plugin's ContainerAllocateResponse in wire format. */
  answer: Buffer;
}

/** Persistent state of the device manager. */
export interface DeviceCheckpoint {
  given: readonly GivenDevices[];
  /** Resource → IDs of its healthy devices at the time of writing. */
  registered: ReadonlyMap<string, readonly string[]>;
}

const text: GoType = { kind: "string", name: "string" };
const texts: GoType = { kind: "list", name: "[]string", of: text };
const data: GoType = {
  kind: "struct",
  name: "checkpoint.checkpointData",
  fields: [
    [
      "PodDeviceEntries",
      {
        kind: "list",
        name: "[]checkpoint.PodDevicesEntry",
        of: {
          kind: "struct",
          name: "checkpoint.PodDevicesEntry",
          fields: [
            ["PodUID", text],
            ["ContainerName", text],
            ["ResourceName", text],
            ["DeviceIDs", { kind: "map", name: "checkpoint.DevicesPerNUMA", numericKeys: true, of: texts }],
            ["AllocResp", { kind: "bytes", name: "[]uint8" }],
          ],
        },
      },
    ],
    ["RegisteredDevices", { kind: "map", name: "map[string][]string", of: texts }],
  ],
};

interface Written {
  Data: {
    PodDeviceEntries:
      | { PodUID: string; ContainerName: string; ResourceName: string; DeviceIDs: Record<string, string[]>; AllocResp: string }[]
      | null;
    RegisteredDevices: Record<string, string[]> | null;
  };
  Checksum: number;
}

/** `kubelet_internal_checkpoint`, in upstream's format. Source: pkg/kubelet/cm/devicemanager/checkpoint */
export const deviceCheckpointForm: CheckpointForm<DeviceCheckpoint> = {
  encode(state) {
    const entries = state.given.map(({ podUid, container, resource, byNode, answer }) => ({
      PodUID: podUid,
      ContainerName: container,
      ResourceName: resource,
      DeviceIDs: Object.fromEntries([...byNode].map(([node, ids]) => [String(node), ids])),
      AllocResp: answer.toString("base64"),
    }));
    return JSON.stringify({
      Data: {
        PodDeviceEntries: entries.length === 0 ? null : entries,
        RegisteredDevices: Object.fromEntries(state.registered),
      },
      Checksum: checksumOf(state),
    });
  },
  decode(text) {
    const { Data, Checksum } = JSON.parse(text) as Written; // cast: another form has another checksum
    const state: DeviceCheckpoint = {
      given: (Data?.PodDeviceEntries ?? []).map((entry) => ({
        podUid: entry.PodUID,
        container: entry.ContainerName,
        resource: entry.ResourceName,
        byNode: new Map(Object.entries(entry.DeviceIDs ?? {}).map(([node, ids]) => [Number(node), ids])),
        answer: Buffer.from(entry.AllocResp ?? "", "base64"),
      })),
      registered: new Map(Object.entries(Data?.RegisteredDevices ?? {})),
    };
    if (Checksum !== checksumOf(state)) throw new Error(corrupt);
    return state;
  },
};

function checksumOf({ given, registered }: DeviceCheckpoint): number {
  const entries = given.map(({ podUid, container, resource, byNode, answer }) => ({
    PodUID: podUid,
    ContainerName: container,
    ResourceName: resource,
    DeviceIDs: new Map([...byNode].map(([node, ids]) => [String(node), ids])),
    AllocResp: answer,
  }));
  return goChecksum({ PodDeviceEntries: entries.length === 0 ? undefined : entries, RegisteredDevices: registered }, data);
}
