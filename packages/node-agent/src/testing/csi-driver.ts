import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeFolder } from "@coxswain/apimachinery/files/make-folder";
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from "@grpc/grpc-js";
import { registrationMessages, registrationService } from "../plugins/registration-schema.ts";
import type { MessageCodec } from "../runtime/messages.ts";
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
  /** The volume condition that is reported for every volume. */
  condition?: { abnormal: boolean; message: string };
  mounter?: Mounter;
  onCall?: (method: string, request: Record<string, unknown>) => void;
}

/** A CSI driver whose volumes are directories that it bind-mounts to the target path. */
export interface TestDriver {
  /** Mutating calls and their requests, in order. */
  readonly calls: { method: string; request: Record<string, unknown> }[];
  /** NotifyRegistrationStatus requests from the kubelet. */
  readonly verdicts: { pluginRegistered: boolean; error: string }[];
  /** Errors for the next calls of a method. */
  failures: Map<string, { code: number; details: string }[]>;
  /** The directory of a volume's files. */
  volumeDir(handle: string): string;
  /** Stops the driver as if it was killed; mounts stay. */
  stop(): Promise<void>;
}

/** The device of block volumes. */
const device = "/dev/zero";

type Answer = (request: Record<string, string>) => object | Promise<object>;

export async function startCsiDriver(options: TestDriverOptions): Promise<TestDriver> {
  const { name, registryDir, dir, mounter = systemMounter, capabilities = ["stageUnstage", "volumeStats", "expand"] } = options;
  const endpoint = join(dir, "csi.sock");
  const registration = join(registryDir, `${name}-reg.sock`);
  const volumeDir = (handle: string): string => join(dir, "volumes", handle);
  const calls: TestDriver["calls"] = [];
  const verdicts: TestDriver["verdicts"] = [];
  const failures: TestDriver["failures"] = new Map();

  async function bind(source: string, target: string, readOnly = false): Promise<void> {
    await makeFolder(source);
    await makeFolder(target);
    if (await isMounted(target, mounter)) return;
    await mounter.mount(source, target, { options: ["bind"] });
    if (readOnly) await mounter.mount(target, target, { options: ["remount", "bind", "ro"] });
  }

  const node: Record<string, Answer> = {
    NodeGetInfo: () => ({
      nodeId: options.nodeId ?? `${name}-node`,
      maxVolumesPerNode: options.maxVolumes ?? 0,
      accessibleTopology: { segments: options.topology ?? {} },
    }),
    NodeGetCapabilities: () => ({ capabilities: capabilities.map((one) => ({ rpc: { type: nodeCapabilities[one] } })) }),
    async NodeStageVolume({ volumeId = "", stagingTargetPath = "" }) {
      await bind(volumeDir(volumeId), stagingTargetPath);
      return {};
    },
    async NodeUnstageVolume({ stagingTargetPath = "" }) {
      if (await isMounted(stagingTargetPath, mounter)) await mounter.unmount(stagingTargetPath);
      return {};
    },
    async NodePublishVolume({ volumeId = "", stagingTargetPath = "", targetPath = "", readonly: readOnly, volumeCapability }) {
      if ((volumeCapability as unknown as { block: object | null }).block !== null) {
        await writeFile(targetPath, "", { flag: "a" });
        if (!(await isMounted(targetPath, mounter))) await mounter.mount(device, targetPath, { options: ["bind"] });
        return {};
      }
      await bind(stagingTargetPath || volumeDir(volumeId), targetPath, Boolean(readOnly));
      return {};
    },
    async NodeUnpublishVolume({ targetPath = "" }) {
      if (await isMounted(targetPath, mounter)) await mounter.unmount(targetPath);
      await rm(targetPath, { recursive: true, force: true });
      return {};
    },
    NodeGetVolumeStats: () => ({
      usage: [
        { unit: 1, total: 1000, used: 300, available: 700 },
        { unit: 2, total: 10, used: 3, available: 7 },
      ],
      ...(options.condition && { volumeCondition: options.condition }),
    }),
    NodeExpandVolume: () => ({}),
  };

  function serve(socket: string, path: string, codec: MessageCodec, methods: Readonly<Record<string, Answer>>): Promise<Server> {
    const server = new Server();
    const names = Object.keys(methods);
    const messageOf = (method: string, kind: "Request" | "Response"): string =>
      messageNames[method]?.[kind] ?? `${method}${kind}`;
    const definition = Object.fromEntries(
      names.map((method) => [
        method,
        {
          path: `${path}/${method}`,
          requestStream: false as const,
          responseStream: false as const,
          requestSerialize: (message: object) => codec.encode(messageOf(method, "Request"), message),
          requestDeserialize: (bytes: Buffer) => codec.decode(messageOf(method, "Request"), bytes),
          responseSerialize: (message: object) => codec.encode(messageOf(method, "Response"), message),
          responseDeserialize: (bytes: Buffer) => codec.decode(messageOf(method, "Response"), bytes),
        },
      ]),
    );
    const handlers = Object.fromEntries(
      names.map((method) => [
        method,
        (call: ServerUnaryCall<Record<string, string>, object>, answer: sendUnaryData<object>) => {
          const failure = failures.get(method)?.shift();
          if (!quiet.includes(method)) {
            calls.push({ method, request: call.request });
            options.onCall?.(method, call.request);
          }
          if (failure !== undefined) return answer(failure);
          Promise.resolve()
            .then(() => (methods[method] as Answer)(call.request))
            .then(
              (message) => answer(null, message),
              (err: Error) => answer({ code: status.INTERNAL, details: err.message }),
            );
        },
      ]),
    );
    server.addService(definition, handlers);
    return new Promise((resolve, reject) => {
      server.bindAsync(`unix://${socket}`, ServerCredentials.createInsecure(), (err) =>
        err === null ? resolve(server) : reject(err),
      );
    });
  }

  for (const folder of [dir, registryDir]) await makeFolder(folder);
  for (const socket of [endpoint, registration]) await rm(socket, { force: true });
  const servers = [await serve(endpoint, csiNodeService, csiMessages, node)];
  servers.push(
    await serve(registration, registrationService, registrationMessages, {
      GetInfo: () => ({ type: "CSIPlugin", name, endpoint, supportedVersions: options.versions ?? ["1.0.0"] }),
      NotifyRegistrationStatus(verdict) {
        verdicts.push(verdict as unknown as { pluginRegistered: boolean; error: string });
        return {};
      },
    }),
  );
  return {
    calls,
    verdicts,
    failures,
    volumeDir,
    async stop() {
      for (const server of servers) server.forceShutdown();
      for (const socket of [endpoint, registration]) await rm(socket, { force: true });
    },
  };
}

/** Message names that differ from `<method>Request` and `<method>Response`. */
const messageNames: Readonly<Record<string, { Request: string; Response: string }>> = {
  GetInfo: { Request: "InfoRequest", Response: "PluginInfo" },
  NotifyRegistrationStatus: { Request: "RegistrationStatus", Response: "RegistrationStatusResponse" },
};

/** Calls without side effects; not recorded. */
const quiet = ["GetInfo", "NotifyRegistrationStatus", "NodeGetInfo", "NodeGetCapabilities", "NodeGetVolumeStats"];
