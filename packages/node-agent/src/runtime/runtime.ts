import type { GrpcCodeName } from "@coxswain/apimachinery/objects/errors/grpc-codes";
import type { Cri, CriInput } from "./cri-schema.ts";

/** Container states as numbered by the CRI. */
export const containerState = { created: 0, running: 1, exited: 2, unknown: 3 } as const;
export const sandboxState = { ready: 0, notReady: 1 } as const;

export type LabelFilter = Readonly<Record<string, string>>;

export interface ExecSyncResult {
  stdout: Buffer;
  stderr: Buffer;
  exitCode: number;
}

/**
 * The container runtime interface. Implemented by `cri-client.ts` for real runtimes and by `fake-runtime.ts` in memory; both
 * pass `suite.ts`. Every method throws RuntimeError; methods that stop or remove are idempotent.
 */
export interface ContainerRuntime {
  version(): Promise<Cri<"VersionResponse">>;
  status(): Promise<Cri<"RuntimeStatus">>;
  updatePodCidr(podCidr: string): Promise<void>;

  runPodSandbox(config: CriInput<"PodSandboxConfig">, runtimeHandler: string): Promise<string>;
  /** Kills all processes in the sandbox and tears down its network; the sandbox remains, not ready. */
  stopPodSandbox(id: string): Promise<void>;
  removePodSandbox(id: string): Promise<void>;
  podSandboxStatus(id: string): Promise<Cri<"PodSandboxStatus">>;
  /** The items are read-only: lists without a filter share them. */
  listPodSandboxes(filter?: { labels?: LabelFilter; id?: string }): Promise<Cri<"PodSandbox">[]>;

  createContainer(
    sandboxId: string,
    config: CriInput<"ContainerConfig">,
    sandboxConfig: CriInput<"PodSandboxConfig">,
  ): Promise<string>;
  startContainer(id: string): Promise<void>;
  /** Sends the image's stop signal, kills after `timeoutSeconds`; resolves when the container has stopped. */
  stopContainer(id: string, timeoutSeconds: number): Promise<void>;
  removeContainer(id: string): Promise<void>;
  containerStatus(id: string): Promise<Cri<"ContainerStatus">>;
  /** The items are read-only, as those of `listPodSandboxes`. */
  listContainers(filter?: { labels?: LabelFilter; sandboxId?: string }): Promise<Cri<"Container">[]>;
  updateContainerResources(id: string, resources: CriInput<"LinuxContainerResources">): Promise<void>;
  reopenContainerLog(id: string): Promise<void>;

  /** @param timeoutSeconds 0 means no timeout. @throws RuntimeError `DeadlineExceeded` on timeout */
  execSync(id: string, command: readonly string[], timeoutSeconds: number): Promise<ExecSyncResult>;
  /** These three return a URL of the runtime's streaming server, to which the client's upgrade request is proxied. */
  exec(request: CriInput<"ExecRequest">): Promise<string>;
  attach(request: CriInput<"AttachRequest">): Promise<string>;
  portForward(request: CriInput<"PortForwardRequest">): Promise<string>;

  listContainerStats(): Promise<Cri<"ContainerStats">[]>;
  /** @throws RuntimeError `Unimplemented` when the runtime has no sandbox statistics */
  listPodSandboxStats(): Promise<Cri<"PodSandboxStats">[]>;

  listImages(): Promise<Cri<"Image">[]>;
  /** @returns undefined when the image is not present */
  imageStatus(image: string): Promise<Cri<"Image"> | undefined>;
  /** @returns the image reference to create containers from */
  pullImage(image: string, auth: CriInput<"AuthConfig"> | undefined, sandbox: CriInput<"PodSandboxConfig">): Promise<string>;
  removeImage(image: string): Promise<void>;
  imageFilesystems(): Promise<Cri<"FilesystemUsage">[]>;

  close(): void;
}

/** A failed call; `message` has gRPC's format: `rpc error: code = NotFound desc = …`. */
export class RuntimeError extends Error {
  readonly code: GrpcCodeName;
  readonly details: string;

  constructor(code: GrpcCodeName, details: string) {
    super(`rpc error: code = ${code} desc = ${details}`);
    this.name = "RuntimeError";
    this.code = code;
    this.details = details;
  }
}

/** Whether the runtime does not know the container, sandbox or image: after a removal that is success. */
export function isRuntimeNotFound(err: unknown): boolean {
  return err instanceof RuntimeError && err.code === "NotFound";
}
