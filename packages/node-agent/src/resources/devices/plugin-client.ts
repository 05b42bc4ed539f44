import { newPluginChannel } from "../../plugins/plugin-channel.ts";
import type { MessagesOf, Sent } from "../../runtime/messages.ts";
import { type DeviceAccess, type PluginDevice, type PluginOptions, pluginMessages } from "./plugin-schema.ts";

/** gRPC client of a device plugin. */
export interface PluginClient {
  /** ListAndWatch: calls back with the complete list on each change. @returns resolves when the stream ends */
  watch(onDevices: (devices: readonly PluginDevice[]) => void): Promise<void>;
  options(): Promise<PluginOptions>;
  /** @throws Error `rpc error: code = … desc = …` */
  allocate(devices: readonly string[]): Promise<{ access: DeviceAccess; bytes: Buffer }>;
  preferred(available: readonly string[], mustInclude: readonly string[], count: number): Promise<readonly string[]>;
  preStart(devices: readonly string[]): Promise<void>;
  close(): void;
}

type Messages = MessagesOf<typeof pluginMessages>;

const connectMs = 10_000;
const preStartMs = 30_000;
/** Plugins may need to prepare devices. Upstream has no timeout for this call. */
const allocateMs = 10 * 60_000;

/** Creates a client for the plugin at `socket`; nothing is sent before the first call. */
export function newPluginClient(socket: string): PluginClient {
  const channel = newPluginChannel(socket, pluginMessages);
  const call = <Q extends keyof Messages, A extends keyof Messages>(
    method: string,
    request: Q,
    response: A,
    message: Sent<Messages, Q>,
    timeoutMs: number,
  ) => channel.call(`/v1beta1.DevicePlugin/${method}`, request, response, message, timeoutMs);

  return {
    watch(onDevices) {
      const onMessage = (bytes: Buffer): void => {
        onDevices(pluginMessages.decode("ListAndWatchResponse", bytes).devices);
      };
      return channel.watch("/v1beta1.DevicePlugin/ListAndWatch", pluginMessages.encode("Empty", {}), onMessage, connectMs);
    },
    async options() {
      const { answer } = await call("GetDevicePluginOptions", "Empty", "DevicePluginOptions", {}, connectMs);
      return answer;
    },
    async allocate(devicesIDs) {
      const request = { containerRequests: [{ devicesIDs }] };
      const { answer } = await call("Allocate", "AllocateRequest", "AllocateResponse", request, allocateMs);
      const [access] = answer.containerResponses;
      if (access === undefined) throw new Error("no containers return in allocation response");
      return { access, bytes: pluginMessages.encode("ContainerAllocateResponse", access) };
    },
    async preferred(availableDeviceIDs, mustIncludeDeviceIDs, allocationSize) {
      const request = { containerRequests: [{ availableDeviceIDs, mustIncludeDeviceIDs, allocationSize }] };
      const { answer } = await call(
        "GetPreferredAllocation",
        "PreferredAllocationRequest",
        "PreferredAllocationResponse",
        request,
        allocateMs,
      );
      return answer.containerResponses[0]?.deviceIDs ?? [];
    },
    async preStart(devicesIDs) {
      await call("PreStartContainer", "PreStartContainerRequest", "PreStartContainerResponse", { devicesIDs }, preStartMs);
    },
    close: () => channel.close(),
  };
}
