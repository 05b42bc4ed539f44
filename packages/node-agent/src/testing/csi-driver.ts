import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from "@grpc/grpc-js";
import { registrationMessages, registrationService } from "../plugins/registration-schema.ts";
import { csiMessages, csiNodeService, type NodeCapability, nodeCapabilities } from "../volumes/csi/csi-schema.ts";
import { isMounted, type Mounter, systemMounter } from "../volumes/mount.ts";

export interface TestDriverOptions {
  name: string;
  /** The kubelet's plugin registration directory. */
  registryDir: string;
  /** The driver's own directory: its socket, and a directory per volume. */
  dir: string;
  nodeId?: string;
  maxVolumes?: number;
  topology?: Readonly<Record<string, string>>;
  capabilities?: readonly NodeCapability[];
  versions?: readonly string[];
  /** False: it registers without an endpoint, so that its registration socket is the one to call. */
  tellsEndpoint?: boolean;
  /** The plugin type that it registers as; default `CSIPlugin`. */
  type?: string;
  /** The volume condition that is reported for every volume. */
  condition?: { abnormal: boolean; message: string };
  /** What is reported as usage of every volume. */
  usage?: readonly object[];
  mounter?: Mounter;
  onCall?: (method: string, request: Record<string, unknown>) => void;
  /** Called when a call is about to be carried out; it waits for what is returned. */
  holds?: (method: string, request: Record<string, unknown>) => Promise<void> | undefined;
}

/** A CSI driver whose volumes are directories that it bind-mounts to the target path. */
export interface TestDriver {
  /** Mutating calls and their requests, in order. */
  readonly calls: { method: string; request: Record<string, unknown> }[];
  /** NotifyRegistrationStatus requests from the kubelet. */
  readonly verdicts: { pluginRegistered: boolean; error: string }[];
  /** Errors for the next calls of a method. */
  failures: Map<string, Failure[]>;
  /** The directory of a volume's files. */
  volumeDir(handle: string): string;
  /** Stops the driver as if it was killed; mounts stay. */
  stop(): Promise<void>;
}

/** The device of block volumes. */
const device = "/dev/zero";

interface Failure {
  readonly code: number;
  readonly details: string;
}

type Answer = (request: Record<string, string>) => object | Promise<object>;

/** Serves a CSI driver at a unix socket. Calls are recorded; `failures` answers the next calls of a method with errors. */
export async function startCsiDriver(options: TestDriverOptions): Promise<TestDriver> {
  const driver = new BindMountDriver(options);
  await driver.start();
  return driver;
}

class BindMountDriver implements TestDriver {
  readonly calls: TestDriver["calls"] = [];
  readonly verdicts: TestDriver["verdicts"] = [];
  readonly failures: TestDriver["failures"] = new Map();
  readonly #options: TestDriverOptions;
  readonly #mounter: Mounter;
  readonly #endpoint: string;
  readonly #registration: string;
  #servers: Server[] = [];

  constructor(options: TestDriverOptions) {
    this.#options = options;
    this.#mounter = options.mounter ?? systemMounter;
    this.#endpoint = join(options.dir, "csi.sock");
    this.#registration = join(options.registryDir, `${options.name}-reg.sock`);
  }

  async start(): Promise<void> {
    const { dir, registryDir } = this.#options;
    for (const folder of [dir, registryDir]) await makeFolder(folder);
    for (const socket of [this.#endpoint, this.#registration]) await rm(socket, { force: true });
    const answering = (method: string, request: Record<string, string>): Failure | undefined => this.#heard(method, request);
    const node = this.#nodeMethods();
    const { holds } = this.#options;
    this.#servers.push(await serve(this.#endpoint, csiNodeService, csiMessages, node, answering, holds));
    const registration = this.#registrationMethods();
    this.#servers.push(await serve(this.#registration, registrationService, registrationMessages, registration, answering));
  }

  volumeDir(handle: string): string {
    return join(this.#options.dir, "volumes", handle);
  }

  async stop(): Promise<void> {
    for (const server of this.#servers) server.forceShutdown();
    for (const socket of [this.#endpoint, this.#registration]) await rm(socket, { force: true });
  }

  #heard(method: string, request: Record<string, string>): Failure | undefined {
    const failure = this.failures.get(method)?.shift();
    if (!quiet.includes(method)) {
      this.calls.push({ method, request });
      this.#options.onCall?.(method, request);
    }
    return failure;
  }

  #registrationMethods(): Readonly<Record<string, Answer>> {
    const { name, type = "CSIPlugin", versions = ["1.0.0"], tellsEndpoint = true } = this.#options;
    return {
      GetInfo: () => ({ type, name, endpoint: tellsEndpoint ? this.#endpoint : "", supportedVersions: versions }),
      NotifyRegistrationStatus: (verdict) => {
        this.verdicts.push(verdict as unknown as { pluginRegistered: boolean; error: string });
        return {};
      },
    };
  }

  #nodeMethods(): Readonly<Record<string, Answer>> {
    const { name, capabilities = ["stageUnstage", "volumeStats", "expand"], ...options } = this.#options;
    return {
      NodeGetInfo: () => ({
        nodeId: options.nodeId ?? `${name}-node`,
        maxVolumesPerNode: options.maxVolumes ?? 0,
        accessibleTopology: { segments: options.topology ?? {} },
      }),
      NodeGetCapabilities: () => ({ capabilities: capabilities.map((one) => ({ rpc: { type: nodeCapabilities[one] } })) }),
      NodeStageVolume: async ({ volumeId = "", stagingTargetPath = "" }) => {
        await this.#bind(this.volumeDir(volumeId), stagingTargetPath);
        return {};
      },
      NodeUnstageVolume: async ({ stagingTargetPath = "" }) => {
        await this.#unmount(stagingTargetPath);
        return {};
      },
      NodePublishVolume: (request) => this.#publish(request),
      NodeUnpublishVolume: async ({ targetPath = "" }) => {
        await this.#unmount(targetPath);
        if (await isMounted(targetPath, this.#mounter)) return {}; // a mounter that does not unmount: the call succeeds all the same
        await rm(targetPath, { recursive: true, force: true });
        return {};
      },
      NodeGetVolumeStats: () => ({
        usage: options.usage ?? [
          { unit: 1, total: 1000, used: 300, available: 700 },
          { unit: 2, total: 10, used: 3, available: 7 },
        ],
        ...(options.condition && { volumeCondition: options.condition }),
      }),
      NodeExpandVolume: () => ({}),
    };
  }

  async #publish(request: Record<string, string>): Promise<object> {
    const { volumeId = "", stagingTargetPath = "", targetPath = "", readonly: readOnly, volumeCapability } = request;
    if ((volumeCapability as unknown as { block: object | null }).block === null) {
      await this.#bind(stagingTargetPath || this.volumeDir(volumeId), targetPath, Boolean(readOnly));
      return {};
    }
    await writeFile(targetPath, "", { flag: "a" });
    if (!(await isMounted(targetPath, this.#mounter))) await this.#mounter.mount(device, targetPath, { options: ["bind"] });
    return {};
  }

  async #bind(source: string, target: string, readOnly = false): Promise<void> {
    await makeFolder(source);
    await makeFolder(target);
    if (await isMounted(target, this.#mounter)) return;
    await this.#mounter.mount(source, target, { options: ["bind"] });
    if (readOnly) await this.#mounter.mount(target, target, { options: ["remount", "bind", "ro"] });
  }

  async #unmount(target: string): Promise<void> {
    if (await isMounted(target, this.#mounter)) await this.#mounter.unmount(target);
  }
}

/** @param heard called with each request; its return value, if any, is sent instead of the method's result */
function serve(
  socket: string,
  path: string,
  codec: { encode(name: string, message: object): Buffer; decode(name: string, bytes: Uint8Array): object },
  methods: Readonly<Record<string, Answer>>,
  heard: (method: string, request: Record<string, string>) => Failure | undefined,
  holds: TestDriverOptions["holds"] = () => undefined,
): Promise<Server> {
  const server = new Server();
  for (const [method, answerOf] of Object.entries(methods)) {
    const { Request, Response } = messageNames[method] ?? { Request: `${method}Request`, Response: `${method}Response` };
    const definition = {
      path: `${path}/${method}`,
      requestStream: false as const,
      responseStream: false as const,
      requestSerialize: (message: object) => codec.encode(Request, message),
      requestDeserialize: (bytes: Buffer) => codec.decode(Request, bytes),
      responseSerialize: (message: object) => codec.encode(Response, message),
      responseDeserialize: (bytes: Buffer) => codec.decode(Response, bytes),
    };
    const handler = (call: ServerUnaryCall<Record<string, string>, object>, answer: sendUnaryData<object>): void => {
      const failure = heard(method, call.request);
      if (failure !== undefined) {
        answer(failure);
        return;
      }
      Promise.resolve(holds(method, call.request))
        .then(() => answerOf(call.request))
        .then(
          (message) => answer(null, message),
          (err: Error) => answer({ code: status.INTERNAL, details: err.message }),
        );
    };
    server.addService({ [method]: definition }, { [method]: handler });
  }
  return new Promise((resolve, reject) => {
    server.bindAsync(`unix://${socket}`, ServerCredentials.createInsecure(), (err) =>
      err === null ? resolve(server) : reject(err),
    );
  });
}

/** Message names that differ from `<method>Request` and `<method>Response`. */
const messageNames: Readonly<Record<string, { Request: string; Response: string }>> = {
  GetInfo: { Request: "InfoRequest", Response: "PluginInfo" },
  NotifyRegistrationStatus: { Request: "RegistrationStatus", Response: "RegistrationStatusResponse" },
};

/** Calls without side effects; not recorded. */
const quiet = ["GetInfo", "NotifyRegistrationStatus", "NodeGetInfo", "NodeGetCapabilities", "NodeGetVolumeStats"];
