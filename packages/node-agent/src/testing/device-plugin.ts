import { join } from "node:path";
import {
  Client,
  credentials,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
} from "@grpc/grpc-js";
import { type DeviceAccess, type PluginDevice, pluginMessages } from "../resources/devices/plugin-schema.ts";

/** A device plugin in the test process, with its own socket. */
export interface TestPlugin {
  /** All calls except ListAndWatch, with their device IDs. */
  readonly calls: string[];
  /** Sends a new device list to the kubelet. */
  setDevices(devices: readonly PluginDevice[]): void;
  register(overrides?: { version?: string; resourceName?: string; endpoint?: string }): Promise<void>;
  /** The result of GetPreferredAllocation. */
  prefers: (available: readonly string[]) => readonly string[];
  failNext: string | undefined;
  stop(): void;
}

export const aDevice = (ID: string, ...nodes: number[]): PluginDevice => ({
  ID,
  health: "Healthy",
  topology: nodes.length === 0 ? null : { nodes: nodes.map((node) => ({ ID: node })) },
});

/** @param dir directory of the kubelet's registration socket and of the plugin's own socket */
export async function startPlugin(
  dir: string,
  resource: string,
  options: { devices: readonly PluginDevice[]; access?: (ids: readonly string[]) => Partial<DeviceAccess>; preStart?: boolean },
): Promise<TestPlugin> {
  const endpoint = `${resource.replaceAll("/", "_")}.sock`;
  const watchers = new Set<ServerWritableStream<object, object>>();
  let devices = options.devices;
  const method = (name: string, request: string, response: string, responseStream = false) => ({
    path: `/v1beta1.DevicePlugin/${name}`,
    requestStream: false as const,
    responseStream,
    requestSerialize: (message: object) => pluginMessages.encode(request, message),
    requestDeserialize: (bytes: Buffer) => pluginMessages.decode(request, bytes),
    responseSerialize: (message: object) => pluginMessages.encode(response, message),
    responseDeserialize: (bytes: Buffer) => pluginMessages.decode(response, bytes),
  });
  type Call = ServerUnaryCall<{ containerRequests: Record<string, string[]>[]; devicesIDs: string[] }, object>;
  const unary =
    (name: string, answer: (call: Call) => object) =>
    (call: Call, respond: sendUnaryData<object>): void => {
      const failure = plugin.failNext;
      plugin.failNext = undefined;
      if (failure !== undefined) {
        respond({ code: 2, details: failure });
        return;
      }
      const message = answer(call);
      const [own] = call.request.containerRequests ?? [];
      plugin.calls.push(`${name} ${own?.devicesIDs ?? own?.availableDeviceIDs ?? call.request.devicesIDs}`);
      respond(null, message);
    };
  const server = new Server();
  const plugin: TestPlugin = {
    calls: [],
    failNext: undefined,
    prefers: () => [],
    setDevices(next) {
      devices = next;
      for (const stream of watchers) stream.write({ devices });
    },
    async register(overrides = {}) {
      const client = new Client(`unix://${join(dir, "kubelet.sock")}`, credentials.createInsecure());
      const preStartRequired = options.preStart ?? false;
      const request = {
        version: "v1beta1",
        endpoint,
        resourceName: resource,
        options: { preStartRequired, getPreferredAllocationAvailable: true },
        ...overrides,
      };
      try {
        await new Promise<void>((resolve, reject) => {
          client.makeUnaryRequest(
            "/v1beta1.Registration/Register",
            (message: object) => pluginMessages.encode("RegisterRequest", message),
            (bytes: Buffer) => bytes,
            request,
            (err) => (err === null ? resolve() : reject(new Error(err.details))),
          );
        });
      } finally {
        client.close();
      }
    },
    stop: () => server.forceShutdown(),
  };
  server.addService(
    {
      ListAndWatch: method("ListAndWatch", "Empty", "ListAndWatchResponse", true),
      Allocate: method("Allocate", "AllocateRequest", "AllocateResponse"),
      GetPreferredAllocation: method("GetPreferredAllocation", "PreferredAllocationRequest", "PreferredAllocationResponse"),
      PreStartContainer: method("PreStartContainer", "PreStartContainerRequest", "PreStartContainerResponse"),
    },
    {
      ListAndWatch(stream: ServerWritableStream<object, object>) {
        watchers.add(stream);
        stream.write({ devices });
      },
      Allocate: unary("Allocate", ({ request }) => ({
        containerResponses: [options.access?.(request.containerRequests[0]?.devicesIDs ?? []) ?? {}],
      })),
      GetPreferredAllocation: unary("GetPreferredAllocation", ({ request }) => ({
        containerResponses: [{ deviceIDs: plugin.prefers(request.containerRequests[0]?.availableDeviceIDs ?? []) }],
      })),
      PreStartContainer: unary("PreStartContainer", () => ({})),
    },
  );
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${join(dir, endpoint)}`, ServerCredentials.createInsecure(), (err) =>
      err === null ? resolve() : reject(err),
    );
  });
  return plugin;
}
