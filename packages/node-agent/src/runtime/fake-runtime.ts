import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Cri, CriInput } from "./cri-schema.ts";
import {
  type ContainerRuntime,
  containerState,
  type ExecSyncResult,
  type LabelFilter,
  RuntimeError,
  sandboxState,
} from "./runtime.ts";

export interface FakeContainer {
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

export interface FakeSandbox {
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
  const sandboxes = new Map<string, FakeSandbox>();
  const containers = new Map<string, FakeContainer>();
  const images = new Map<string, Cri<"Image">>();
  const registry = new Set<string>();
  const calls: string[] = [];
  const failures = new Map<string, RuntimeError[]>();
  let counter = 0;
  let lastTime = 0;

  const newId = (): string => (++counter).toString(16).padStart(64, "0");
  /** Unique, increasing timestamps in nanoseconds. */
  const now = (): number => {
    lastTime = Math.max(lastTime + 1000, clock.now() * 1e6);
    return lastTime;
  };
  function call(method: string, what: string): void {
    calls.push(`${method} ${what}`);
    const failure = failures.get(method)?.shift();
    if (failure !== undefined) throw failure;
  }
  function sandbox(id: string): FakeSandbox {
    const found = sandboxes.get(id);
    if (found === undefined) throw new RuntimeError("NotFound", `an error occurred when try to find sandbox: not found`);
    return found;
  }
  function container(id: string): FakeContainer {
    const found = containers.get(id);
    if (found === undefined)
      throw new RuntimeError("NotFound", `an error occurred when try to find container "${id}": not found`);
    return found;
  }
  function end(found: FakeContainer, exitCode: number): void {
    if (found.state !== containerState.running) return;
    found.state = containerState.exited;
    found.exitCode = exitCode;
    found.finishedAt = now();
    found.reason = exitCode === 0 ? "Completed" : "Error";
  }
  const matches = (labels: Readonly<Record<string, string>> | undefined, filter: LabelFilter | undefined): boolean =>
    Object.entries(filter ?? {}).every(([key, value]) => labels?.[key] === value);
  const nameOf = (config: CriInput<"ContainerConfig"> | CriInput<"PodSandboxConfig">): string => config.metadata?.name ?? "";

  const fake: FakeRuntime = {
    calls,
    sandboxes,
    containers,
    registry,
    networkReady: true,
    onExec: () => ({ stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), exitCode: 0 }),
    addImage(name, options = {}) {
      images.set(name, {
        id: `sha256:${name}`,
        repoTags: [name],
        repoDigests: [],
        size: options.sizeBytes ?? 1000,
        uid: options.uid === undefined ? null : { value: options.uid },
        username: options.username ?? "",
        spec: null,
        pinned: false,
      });
    },
    exit: (id, exitCode) => end(container(id), exitCode),
    find: (name) =>
      [...containers.values()]
        .filter((candidate) => nameOf(candidate.config) === name)
        .sort((a, b) => b.createdAt - a.createdAt)[0],
    failNext(method, err) {
      failures.set(method, [...(failures.get(method) ?? []), err]);
    },

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
    updatePodCidr: async (cidr) => call("UpdateRuntimeConfig", cidr),

    async runPodSandbox(config) {
      call("RunPodSandbox", nameOf(config));
      const id = newId();
      const host = config.linux?.securityContext?.namespaceOptions?.network === 2;
      sandboxes.set(id, { id, config, state: sandboxState.ready, createdAt: now(), ip: host ? "" : `10.0.0.${counter % 250}` });
      return id;
    },
    async stopPodSandbox(id) {
      const found = sandboxes.get(id);
      if (found === undefined) return;
      if (found.state === sandboxState.ready) call("StopPodSandbox", nameOf(found.config));
      found.state = sandboxState.notReady;
      for (const candidate of containers.values()) if (candidate.sandboxId === id) end(candidate, 137);
    },
    async removePodSandbox(id) {
      const found = sandboxes.get(id);
      if (found === undefined) return;
      call("RemovePodSandbox", nameOf(found.config));
      await fake.stopPodSandbox(id);
      sandboxes.delete(id);
      for (const candidate of [...containers.values()]) if (candidate.sandboxId === id) containers.delete(candidate.id);
    },
    async podSandboxStatus(id) {
      const found = sandbox(id);
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
      const found = [...sandboxes.values()].filter(
        (candidate) =>
          matches(candidate.config.labels, filter?.labels) && (filter?.id === undefined || candidate.id.startsWith(filter.id)),
      );
      return Promise.all(
        found.map(async ({ id }) => {
          const { network: _, linux: __, ...listed } = await fake.podSandboxStatus(id);
          return listed;
        }),
      );
    },

    async createContainer(sandboxId, config) {
      call("CreateContainer", nameOf(config));
      const owner = sandbox(sandboxId);
      if (owner.state !== sandboxState.ready)
        throw new RuntimeError("Unknown", `sandbox container "${sandboxId}" is not running`);
      const id = newId();
      const createdAt = now();
      containers.set(id, {
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
      const found = container(id);
      call("StartContainer", nameOf(found.config));
      found.state = containerState.running;
      found.startedAt = now();
    },
    async stopContainer(id) {
      const found = containers.get(id);
      if (found === undefined || found.state !== containerState.running) return;
      call("StopContainer", nameOf(found.config));
      end(found, 137);
    },
    async removeContainer(id) {
      const found = containers.get(id);
      if (found === undefined) return;
      call("RemoveContainer", nameOf(found.config));
      containers.delete(id);
    },
    async containerStatus(id) {
      const found = container(id);
      const { config } = found;
      const logDirectory = sandboxes.get(found.sandboxId)?.config.logDirectory;
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
      const found = [...containers.values()].filter(
        (candidate) =>
          matches(candidate.config.labels, filter?.labels) &&
          (filter?.sandboxId === undefined || candidate.sandboxId === filter.sandboxId),
      );
      return Promise.all(
        found.map(async ({ id, sandboxId }) => {
          const status = await fake.containerStatus(id);
          const { metadata, image, imageRef, state, createdAt, labels, annotations } = status;
          return { id, podSandboxId: sandboxId, metadata, image, imageRef, state, createdAt, labels, annotations };
        }),
      );
    },
    updateContainerResources: async (id) => void container(id),
    reopenContainerLog: async (id) => {
      if (container(id).state !== containerState.running) throw new RuntimeError("Unknown", "container is not running");
    },

    async execSync(id, command) {
      const found = container(id);
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
      const running = [...sandboxes.values()].filter(({ state }) => state === sandboxState.ready);
      return Promise.all(
        running.map(async ({ id }) => {
          const { metadata, labels, annotations } = await fake.podSandboxStatus(id);
          return { attributes: { id, metadata, labels, annotations }, linux: null, windows: null };
        }),
      );
    },

    listImages: async () => [...images.values()],
    imageStatus: async (image) => images.get(image) ?? [...images.values()].find((candidate) => candidate.id === image),
    async pullImage(image) {
      call("PullImage", image);
      if (!registry.has(image)) {
        throw new RuntimeError(
          "NotFound",
          `failed to pull and unpack image "${image}": failed to resolve reference "${image}": not found`,
        );
      }
      fake.addImage(image);
      return `sha256:${image}`;
    },
    async removeImage(image) {
      call("RemoveImage", image);
      for (const [name, candidate] of images) if (name === image || candidate.id === image) images.delete(name);
    },
    imageFilesystems: async () => [],
    close: () => undefined,
  };
  return fake;
}
