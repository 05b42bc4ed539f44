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
import type { MessagesOf } from "../runtime/messages.ts";

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

interface TestPluginOptions {
  readonly devices: readonly PluginDevice[];
  readonly access?: (ids: readonly string[]) => Partial<DeviceAccess>;
  readonly preStart?: boolean;
}

/** @param dir directory of the kubelet's registration socket and of the plugin's own socket */
export async function startPlugin(dir: string, resource: string, options: TestPluginOptions): Promise<TestPlugin> {
  const plugin = new ListedDevices(dir, resource, options);
  await plugin.start();
  return plugin;
}

type Call = ServerUnaryCall<{ containerRequests: Record<string, string[]>[]; devicesIDs: string[] }, object>;

class ListedDevices implements TestPlugin {
  readonly calls: string[] = [];
  failNext: string | undefined;
  prefers: TestPlugin["prefers"] = () => [];
  readonly #dir: string;
  readonly #resource: string;
  readonly #endpoint: string;
  readonly #options: TestPluginOptions;
  readonly #server = new Server();
  readonly #watchers = new Set<ServerWritableStream<object, object>>();
  #devices: readonly PluginDevice[];

  constructor(dir: string, resource: string, options: TestPluginOptions) {
    this.#dir = dir;
    this.#resource = resource;
    this.#endpoint = `${resource.replaceAll("/", "_")}.sock`;
    this.#options = options;
    this.#devices = options.devices;
  }

  async start(): Promise<void> {
    this.#server.addService(
      {
        ListAndWatch: method("ListAndWatch", "Empty", "ListAndWatchResponse", true),
        Allocate: method("Allocate", "AllocateRequest", "AllocateResponse"),
        GetPreferredAllocation: method("GetPreferredAllocation", "PreferredAllocationRequest", "PreferredAllocationResponse"),
        GetDevicePluginOptions: method("GetDevicePluginOptions", "Empty", "DevicePluginOptions"),
        PreStartContainer: method("PreStartContainer", "PreStartContainerRequest", "PreStartContainerResponse"),
      },
      {
        ListAndWatch: (stream: ServerWritableStream<object, object>) => {
          this.#watchers.add(stream);
          stream.write({ devices: this.#devices });
        },
        Allocate: this.#unary("Allocate", ({ request }) => ({
          containerResponses: [this.#options.access?.(request.containerRequests[0]?.devicesIDs ?? []) ?? {}],
        })),
        GetPreferredAllocation: this.#unary("GetPreferredAllocation", ({ request }) => ({
          containerResponses: [{ deviceIDs: this.prefers(request.containerRequests[0]?.availableDeviceIDs ?? []) }],
        })),
        GetDevicePluginOptions: this.#unary("GetDevicePluginOptions", () => this.#pluginOptions()),
        PreStartContainer: this.#unary("PreStartContainer", () => ({})),
      },
    );
    await new Promise<void>((resolve, reject) => {
      const address = `unix://${join(this.#dir, this.#endpoint)}`;
      this.#server.bindAsync(address, ServerCredentials.createInsecure(), (err) => (err === null ? resolve() : reject(err)));
    });
  }

  setDevices(next: readonly PluginDevice[]): void {
    this.#devices = next;
    for (const stream of this.#watchers) stream.write({ devices: next });
  }

  async register(overrides: Parameters<TestPlugin["register"]>[0] = {}): Promise<void> {
    const client = new Client(`unix://${join(this.#dir, "kubelet.sock")}`, credentials.createInsecure());
    const request = {
      version: "v1beta1",
      endpoint: this.#endpoint,
      resourceName: this.#resource,
      options: this.#pluginOptions(),
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
  }

  #pluginOptions() {
    return { preStartRequired: this.#options.preStart ?? false, getPreferredAllocationAvailable: true };
  }

  stop(): void {
    this.#server.forceShutdown();
  }

  #unary(name: string, answer: (call: Call) => object) {
    return (call: Call, respond: sendUnaryData<object>): void => {
      const failure = this.failNext;
      this.failNext = undefined;
      if (failure !== undefined) {
        respond({ code: 2, details: failure });
        return;
      }
      const message = answer(call);
      const [own] = call.request.containerRequests ?? [];
      const must = own?.mustIncludeDeviceIDs ?? [];
      const asked = `${own?.devicesIDs ?? own?.availableDeviceIDs ?? call.request.devicesIDs}`;
      this.calls.push(`${name} ${asked}${must.length > 0 ? ` with ${must}, ${own?.allocationSize} in all` : ""}`);
      respond(null, message);
    };
  }
}

type MessageName = keyof MessagesOf<typeof pluginMessages>;

const method = (name: string, request: MessageName, response: MessageName, responseStream = false) => ({
  path: `/v1beta1.DevicePlugin/${name}`,
  requestStream: false as const,
  responseStream,
  requestSerialize: (message: object) => pluginMessages.encode(request, message),
  requestDeserialize: (bytes: Buffer) => pluginMessages.decode(request, bytes),
  responseSerialize: (message: object) => pluginMessages.encode(response, message),
  responseDeserialize: (bytes: Buffer) => pluginMessages.decode(response, bytes),
});
