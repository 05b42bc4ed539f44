import { grpcCodeNames } from "@coxswain/apimachinery/errors/grpc-codes";
import { Client, type ClientReadableStream, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { type DeviceAccess, type PluginDevice, pluginMessages } from "./plugin-schema.ts";

/** A device plugin behind its socket. */
export interface PluginClient {
  /** Calls back with all devices each time they change. @returns resolves when the plugin has gone */
  watch(onDevices: (devices: readonly PluginDevice[]) => void): Promise<void>;
  /** @throws Error `rpc error: code = … desc = …` */
  allocate(devices: readonly string[]): Promise<{ access: DeviceAccess; bytes: Buffer }>;
  preferred(available: readonly string[], mustInclude: readonly string[], count: number): Promise<readonly string[]>;
  preStart(devices: readonly string[]): Promise<void>;
  close(): void;
}

const connectMs = 10_000;
const preStartMs = 30_000;
/** Devices may have to be made ready; there is no limit of upstream's for this. */
const allocateMs = 10 * 60_000;

export function newPluginClient(socket: string): PluginClient {
  const client = new Client(`unix://${socket}`, credentials.createInsecure());

  function call(method: string, request: string, response: string, message: object, timeoutMs: number) {
    return new Promise<{ answer: Record<string, unknown>; bytes: Buffer }>((resolve, reject) => {
      client.makeUnaryRequest(
        `/v1beta1.DevicePlugin/${method}`,
        (body: object) => pluginMessages.encode(request, body),
        (bytes: Buffer) => ({ answer: pluginMessages.decode(response, bytes), bytes }),
        message,
        new Metadata(),
        { deadline: Date.now() + timeoutMs },
        (err: ServiceError | null, answer?: { answer: Record<string, unknown>; bytes: Buffer }) => {
          if (err === null && answer !== undefined) resolve(answer);
          else reject(new Error(`rpc error: code = ${grpcCodeNames[err?.code ?? 2] ?? "Unknown"} desc = ${err?.details ?? ""}`));
        },
      );
    });
  }

  return {
    watch: (onDevices) =>
      new Promise((resolve) => {
        client.waitForReady(Date.now() + connectMs, (err) => {
          if (err !== undefined) return resolve();
          const stream: ClientReadableStream<{ devices: PluginDevice[] }> = client.makeServerStreamRequest(
            "/v1beta1.DevicePlugin/ListAndWatch",
            (body: object) => pluginMessages.encode("Empty", body),
            (bytes: Buffer) => pluginMessages.decode("ListAndWatchResponse", bytes) as unknown as { devices: PluginDevice[] },
            {},
          );
          stream.on("data", ({ devices }) => onDevices(devices));
          stream.on("error", () => resolve());
          stream.on("end", () => resolve());
        });
      }),
    async allocate(devicesIDs) {
      const request = { containerRequests: [{ devicesIDs }] };
      const { answer } = await call("Allocate", "AllocateRequest", "AllocateResponse", request, allocateMs);
      const [access] = answer.containerResponses as DeviceAccess[];
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
      return (answer.containerResponses as { deviceIDs: string[] }[])[0]?.deviceIDs ?? [];
    },
    async preStart(devicesIDs) {
      await call("PreStartContainer", "PreStartContainerRequest", "PreStartContainerResponse", { devicesIDs }, preStartMs);
    },
    close: () => client.close(),
  };
}
