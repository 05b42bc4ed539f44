import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Cri, CriInput } from "../runtime/cri-schema.ts";
import {
  type ContainerRuntime,
  containerState,
  type ExecSyncResult,
  type LabelFilter,
  RuntimeError,
  sandboxState,
} from "../runtime/runtime.ts";

interface FakeContainer {
  id: string;
  sandboxId: string;
  config: CriInput<"ContainerConfig">;
  state: number;
  createdAt: number;
  startedAt: number;
  finishedAt: number;
  exitCode: number;
  reason: string;
}

interface FakeSandbox {
  id: string;
  config: CriInput<"PodSandboxConfig">;
  state: number;
  createdAt: number;
  ip: string;
}

export interface FakeRuntime extends ContainerRuntime {
  /** Mutating calls in order: `RunPodSandbox web`, `StartContainer main`. */
  readonly calls: string[];
  readonly sandboxes: Map<string, FakeSandbox>;
  readonly containers: Map<string, FakeContainer>;
  addImage(name: string, options?: { uid?: number; username?: string; sizeBytes?: number }): void;
  /** Images that can be pulled. */
  readonly registry: Set<string>;
  /** Simulates the exit of a container's process. */
  exit(containerId: string, exitCode: number): void;
  /** The newest container with that name. */
  find(containerName: string): FakeContainer | undefined;
  /** Makes the next call of that method fail; repeated calls queue failures. */
  failNext(method: string, err: RuntimeError): void;
  onExec: (containerId: string, command: readonly string[]) => ExecSyncResult | Promise<ExecSyncResult>;
  networkReady: boolean;
}

/** An in-memory runtime; timestamps come from `clock`. */
export function newFakeRuntime(clock: Clock): FakeRuntime {
  const state = new FakeRuntimeState(clock);
  const fake: FakeRuntime = {
    calls: state.calls,
    sandboxes: state.sandboxes,
    containers: state.containers,
    registry: state.registry,
    networkReady: true,
    onExec: () => ({ stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), exitCode: 0 }),
    addImage: (name, options) => state.addImage(name, options),
    exit: (id, exitCode) => state.end(state.container(id), exitCode),
    find: (name) =>
      [...state.containers.values()]
        .filter((candidate) => nameOf(candidate.config) === name)
        .sort((a, b) => b.createdAt - a.createdAt)[0],
    failNext: (method, err) => void state.failures.getOrInsertComputed(method, () => []).push(err),
    ...sandboxCalls(state),
    ...containerReads(state),
    ...containerWrites(state),
    ...imageCalls(state),

    version: async () => ({ version: "0.1.0", runtimeName: "containerd", runtimeVersion: "fake", runtimeApiVersion: "v1" }),
    status: async () => ({
      conditions: [
        { type: "RuntimeReady", status: true, reason: "", message: "" },
        {
          type: "NetworkReady",
          status: fake.networkReady,
          reason: fake.networkReady ? "" : "NetworkPluginNotReady",
          message: fake.networkReady ? "" : "Network plugin returns error: cni plugin not initialized",
        },
      ],
    }),
    updatePodCidr: async (cidr) => state.call("UpdateRuntimeConfig", cidr),

    async execSync(id, command) {
      const found = state.container(id);
      if (found.state !== containerState.running) {
        throw new RuntimeError("Unknown", `failed to exec in container: container is in CONTAINER_EXITED state`);
      }
      return fake.onExec(id, command);
    },
    exec: async () => "http://127.0.0.1:0/exec/token",
    attach: async () => "http://127.0.0.1:0/attach/token",
    portForward: async () => "http://127.0.0.1:0/portforward/token",
    listContainerStats: async () => [],
    async listPodSandboxStats() {
      const running = [...state.sandboxes.values()].filter((one) => one.state === sandboxState.ready);
      return Promise.all(
        running.map(async ({ id }) => {
          const { metadata, labels, annotations } = await fake.podSandboxStatus(id);
          return { attributes: { id, metadata, labels, annotations }, linux: null, windows: null };
        }),
      );
    },
    imageFilesystems: async () => [],
    close: () => undefined,
  };
  return fake;
}

/** State of the fake runtime: its sandboxes, containers and images, and helpers shared by its calls. */
class FakeRuntimeState {
  readonly sandboxes = new Map<string, FakeSandbox>();
  readonly containers = new Map<string, FakeContainer>();
  readonly images = new Map<string, Cri<"Image">>();
  readonly registry = new Set<string>();
  readonly calls: string[] = [];
  readonly failures = new Map<string, RuntimeError[]>();
  /** Number of sandboxes and containers so far. */
  made = 0;
  readonly #clock: Clock;
  #lastTime = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  newId(): string {
    return (++this.made).toString(16).padStart(64, "0");
  }

  /** Unique, increasing timestamps in nanoseconds. */
  now(): number {
    this.#lastTime = Math.max(this.#lastTime + 1000, this.#clock.now() * 1e6);
    return this.#lastTime;
  }

  /** Records a mutating call. @throws the failure that a test has queued for it */
  call(method: string, what: string): void {
    this.calls.push(`${method} ${what}`);
    const failure = this.failures.get(method)?.shift();
    if (failure !== undefined) throw failure;
  }

  sandbox(id: string): FakeSandbox {
    const found = this.sandboxes.get(id);
    if (found === undefined) throw new RuntimeError("NotFound", `an error occurred when try to find sandbox: not found`);
    return found;
  }

  container(id: string): FakeContainer {
    const found = this.containers.get(id);
    if (found === undefined)
      throw new RuntimeError("NotFound", `an error occurred when try to find container "${id}": not found`);
    return found;
  }

  end(found: FakeContainer, exitCode: number): void {
    if (found.state !== containerState.running) return;
    found.state = containerState.exited;
    found.exitCode = exitCode;
    found.finishedAt = this.now();
    found.reason = exitCode === 0 ? "Completed" : "Error";
  }

  addImage(name: string, options: { uid?: number; username?: string; sizeBytes?: number } = {}): void {
    this.images.set(name, {
      id: `sha256:${name}`,
      repoTags: [name],
      repoDigests: [],
      size: options.sizeBytes ?? 1000,
      uid: options.uid === undefined ? null : { value: options.uid },
      username: options.username ?? "",
      spec: null,
      pinned: false,
    });
  }
}

const matches = (labels: Readonly<Record<string, string>> | undefined, filter: LabelFilter | undefined): boolean =>
  Object.entries(filter ?? {}).every(([key, value]) => labels?.[key] === value);
const nameOf = (config: CriInput<"ContainerConfig"> | CriInput<"PodSandboxConfig">): string => config.metadata?.name ?? "";

type SandboxCalls = Pick<
  ContainerRuntime,
  "runPodSandbox" | "stopPodSandbox" | "removePodSandbox" | "podSandboxStatus" | "listPodSandboxes"
>;

function sandboxCalls(state: FakeRuntimeState): SandboxCalls {
  const calls: SandboxCalls = {
    async runPodSandbox(config) {
      state.call("RunPodSandbox", nameOf(config));
      const id = state.newId();
      const host = config.linux?.securityContext?.namespaceOptions?.network === 2;
      state.sandboxes.set(id, {
        id,
        config,
        state: sandboxState.ready,
        createdAt: state.now(),
        ip: host ? "" : `10.0.0.${state.made % 250}`,
      });
      return id;
    },
    async stopPodSandbox(id) {
      const found = state.sandboxes.get(id);
      if (found === undefined) return;
      if (found.state === sandboxState.ready) state.call("StopPodSandbox", nameOf(found.config));
      found.state = sandboxState.notReady;
      for (const candidate of state.containers.values()) if (candidate.sandboxId === id) state.end(candidate, 137);
    },
    async removePodSandbox(id) {
      const found = state.sandboxes.get(id);
      if (found === undefined) return;
      state.call("RemovePodSandbox", nameOf(found.config));
      await calls.stopPodSandbox(id);
      state.sandboxes.delete(id);
      for (const candidate of [...state.containers.values()])
        if (candidate.sandboxId === id) state.containers.delete(candidate.id);
    },
    async podSandboxStatus(id) {
      const found = state.sandbox(id);
      const metadata = found.config.metadata;
      return {
        id,
        metadata: {
          name: metadata?.name ?? "",
          uid: metadata?.uid ?? "",
          namespace: metadata?.namespace ?? "",
          attempt: metadata?.attempt ?? 0,
        },
        state: found.state,
        createdAt: found.createdAt,
        network: { ip: found.state === sandboxState.ready ? found.ip : "", additionalIps: [] },
        linux: {
          namespaces: {
            options: {
              network: found.config.linux?.securityContext?.namespaceOptions?.network ?? 0,
              pid: 0,
              ipc: 0,
              targetId: "",
            },
          },
        },
        labels: { ...found.config.labels },
        annotations: { ...found.config.annotations },
        runtimeHandler: "",
      };
    },
    async listPodSandboxes(filter) {
      const found = [...state.sandboxes.values()].filter(
        (candidate) =>
          matches(candidate.config.labels, filter?.labels) && (filter?.id === undefined || candidate.id.startsWith(filter.id)),
      );
      return Promise.all(
        found.map(async ({ id }) => {
          const { network: _, linux: __, ...listed } = await calls.podSandboxStatus(id);
          return listed;
        }),
      );
    },
  };
  return calls;
}

type ContainerWrites = Pick<
  ContainerRuntime,
  "createContainer" | "startContainer" | "stopContainer" | "removeContainer" | "updateContainerResources" | "reopenContainerLog"
>;

function containerWrites(state: FakeRuntimeState): ContainerWrites {
  const calls: ContainerWrites = {
    async createContainer(sandboxId, config) {
      state.call("CreateContainer", nameOf(config));
      const owner = state.sandbox(sandboxId);
      if (owner.state !== sandboxState.ready)
        throw new RuntimeError("Unknown", `sandbox container "${sandboxId}" is not running`);
      const id = state.newId();
      const createdAt = state.now();
      state.containers.set(id, {
        id,
        sandboxId,
        config,
        state: containerState.created,
        createdAt,
        startedAt: 0,
        finishedAt: 0,
        exitCode: 0,
        reason: "",
      });
      return id;
    },
    async startContainer(id) {
      const found = state.container(id);
      state.call("StartContainer", nameOf(found.config));
      found.state = containerState.running;
      found.startedAt = state.now();
    },
    async stopContainer(id) {
      const found = state.containers.get(id);
      if (found === undefined || found.state !== containerState.running) return;
      state.call("StopContainer", nameOf(found.config));
      state.end(found, 137);
    },
    async removeContainer(id) {
      const found = state.containers.get(id);
      if (found === undefined) return;
      state.call("RemoveContainer", nameOf(found.config));
      state.containers.delete(id);
    },
    updateContainerResources: async (id) => void state.container(id),
    reopenContainerLog: async (id) => {
      if (state.container(id).state !== containerState.running) throw new RuntimeError("Unknown", "container is not running");
    },
  };
  return calls;
}

type ContainerReads = Pick<ContainerRuntime, "containerStatus" | "listContainers">;

function containerReads(state: FakeRuntimeState): ContainerReads {
  const calls: ContainerReads = {
    async containerStatus(id) {
      const found = state.container(id);
      const { config } = found;
      const logDirectory = state.sandboxes.get(found.sandboxId)?.config.logDirectory;
      return {
        id,
        metadata: { name: nameOf(config), attempt: config.metadata?.attempt ?? 0 },
        state: found.state,
        createdAt: found.createdAt,
        startedAt: found.startedAt,
        finishedAt: found.finishedAt,
        exitCode: found.exitCode,
        image: { image: config.image?.image ?? "", annotations: {} },
        imageRef: config.image?.image ?? "",
        reason: found.reason,
        message: "",
        labels: { ...config.labels },
        annotations: { ...config.annotations },
        mounts: (config.mounts ?? []).map((mount) => ({
          containerPath: mount.containerPath ?? "",
          hostPath: mount.hostPath ?? "",
          readonly: mount.readonly ?? false,
          selinuxRelabel: false,
          propagation: mount.propagation ?? 0,
        })),
        logPath: logDirectory === undefined || !config.logPath ? "" : `${logDirectory}/${config.logPath}`,
      };
    },
    async listContainers(filter) {
      const found = [...state.containers.values()].filter(
        (candidate) =>
          matches(candidate.config.labels, filter?.labels) &&
          (filter?.sandboxId === undefined || candidate.sandboxId === filter.sandboxId),
      );
      return Promise.all(
        found.map(async ({ id, sandboxId }) => {
          const status = await calls.containerStatus(id);
          const { metadata, image, imageRef, state, createdAt, labels, annotations } = status;
          return { id, podSandboxId: sandboxId, metadata, image, imageRef, state, createdAt, labels, annotations };
        }),
      );
    },
  };
  return calls;
}

type ImageCalls = Pick<ContainerRuntime, "listImages" | "imageStatus" | "pullImage" | "removeImage">;

function imageCalls(state: FakeRuntimeState): ImageCalls {
  const calls: ImageCalls = {
    listImages: async () => [...state.images.values()],
    imageStatus: async (image) =>
      state.images.get(image) ?? [...state.images.values()].find((candidate) => candidate.id === image),
    async pullImage(image) {
      state.call("PullImage", image);
      if (!state.registry.has(image)) {
        throw new RuntimeError(
          "NotFound",
          `failed to pull and unpack image "${image}": failed to resolve reference "${image}": not found`,
        );
      }
      state.addImage(image);
      return `sha256:${image}`;
    },
    async removeImage(image) {
      state.call("RemoveImage", image);
      for (const [name, candidate] of state.images) if (name === image || candidate.id === image) state.images.delete(name);
    },
  };
  return calls;
}
