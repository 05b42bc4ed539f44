import { grpcCodeNames } from "@coxswain/apimachinery/objects/errors/grpc-codes";
import { isOneOf } from "@coxswain/apimachinery/process/narrowing/keys";
import { GrpcChannel } from "@coxswain/apimachinery/transport/grpc/channel";
import { asCallError } from "@coxswain/apimachinery/transport/grpc/grpc-error";
import { type Cri, type CriInput, type CriMessageName, criEnums, criMessages, criServices } from "./cri-schema.ts";
import { newMessageCodec } from "./messages.ts";
import { RepeatedList } from "./repeated-list.ts";
import type { LabelFilter } from "./runtime.ts";
import { type ContainerRuntime, isRuntimeNotFound, RuntimeError } from "./runtime.ts";

interface CriClientOptions {
  /** `unix:///run/containerd/containerd.sock`, or a path. */
  endpoint: string;
  /** Endpoint of the image service, when it differs. */
  imageEndpoint?: string | undefined;
  /** Deadline of calls that are not known to take longer. */
  requestTimeoutMs: number;
  /** Called for every finished call, for metrics. */
  onCall?: ((method: string, durationMs: number, err: unknown, request: object) => void) | undefined;
}

const maxMessageBytes = 16 * 1024 * 1024;
/** Source: google.golang.org/grpc minConnectTimeout */
const connectTimeoutMs = 20_000;
/** Deadline of image pulls and of commands without timeout. */
const longestCallMs = 6 * 60 * 60 * 1000;
type ApiVersion = "v1" | "v1alpha2";

interface Service {
  channel: GrpcChannel;
  name: keyof typeof criServices;
  version: ApiVersion | undefined;
}

/**
 * Client of a container runtime at a unix socket. Uses `runtime.v1`, or `runtime.v1alpha2` when the runtime does not implement
 * v1. The version is negotiated by the first successful call and again after an Unimplemented error.
 * Source: pkg/kubelet/cri/remote
 */
export function newCriClient(options: CriClientOptions): ContainerRuntime {
  return new GrpcCriClient(options);
}

class GrpcCriClient implements ContainerRuntime {
  readonly #options: CriClientOptions;
  readonly #runtimeChannel: ReturnType<typeof openChannel>;
  readonly #imageEndpoint: string;
  readonly #imageChannel: ReturnType<typeof openChannel>;
  readonly #runtimeService: Service;
  readonly #imageService: Service;
  readonly #allSandboxes = new RepeatedList((bytes) => decodeCri("PodSandbox", bytes));
  readonly #allContainers = new RepeatedList((bytes) => decodeCri("Container", bytes));

  constructor(options: CriClientOptions) {
    this.#options = options;
    this.#runtimeChannel = openChannel(options.endpoint);
    this.#imageEndpoint = options.imageEndpoint || options.endpoint;
    this.#imageChannel = this.#imageEndpoint === options.endpoint ? this.#runtimeChannel : openChannel(this.#imageEndpoint);
    this.#runtimeService = { channel: this.#runtimeChannel, name: "RuntimeService", version: undefined };
    this.#imageService = { channel: this.#imageChannel, name: "ImageService", version: undefined };
  }

  version(): Promise<Cri<"VersionResponse">> {
    return this.#call("Version", "VersionRequest", "VersionResponse", { version: "0.1.0" });
  }

  async status(): Promise<Cri<"RuntimeStatus">> {
    const { status } = await this.#call("Status", "StatusRequest", "StatusResponse", {});
    return status ?? { conditions: [] };
  }

  async updatePodCidr(podCidr: string): Promise<void> {
    await this.#call("UpdateRuntimeConfig", "UpdateRuntimeConfigRequest", "UpdateRuntimeConfigResponse", {
      runtimeConfig: { networkConfig: { podCidr } },
    });
  }

  async runPodSandbox(config: CriInput<"PodSandboxConfig">, runtimeHandler: string): Promise<string> {
    const timeoutMs = this.#options.requestTimeoutMs * 2; // may include pulling the sandbox image
    const request = { config, runtimeHandler };
    const answer = await this.#call("RunPodSandbox", "RunPodSandboxRequest", "RunPodSandboxResponse", request, timeoutMs);
    if (answer.podSandboxId === "") {
      throw new RuntimeError("Unknown", `PodSandboxId is not set for sandbox "${config.metadata?.name ?? ""}"`);
    }
    return answer.podSandboxId;
  }

  async stopPodSandbox(podSandboxId: string): Promise<void> {
    await this.#call("StopPodSandbox", "StopPodSandboxRequest", "StopPodSandboxResponse", { podSandboxId });
  }

  async removePodSandbox(podSandboxId: string): Promise<void> {
    await this.#call("RemovePodSandbox", "RemovePodSandboxRequest", "RemovePodSandboxResponse", { podSandboxId });
  }

  async podSandboxStatus(podSandboxId: string): Promise<Cri<"PodSandboxStatus">> {
    const answer = await this.#call("PodSandboxStatus", "PodSandboxStatusRequest", "PodSandboxStatusResponse", { podSandboxId });
    return present(answer.status, `sandbox ${podSandboxId}`);
  }

  async listPodSandboxes(filter: { labels?: LabelFilter; id?: string } | undefined): Promise<Cri<"PodSandbox">[]> {
    if (filter === undefined) return this.#callFor("ListPodSandbox", "ListPodSandboxRequest", { filter: {} }, this.#allSandboxes);
    const request = { filter: { id: filter.id, labelSelector: filter.labels } };
    return (await this.#call("ListPodSandbox", "ListPodSandboxRequest", "ListPodSandboxResponse", request)).items;
  }

  async createContainer(
    podSandboxId: string,
    config: CriInput<"ContainerConfig">,
    sandboxConfig: CriInput<"PodSandboxConfig">,
  ): Promise<string> {
    const request = { podSandboxId, config, sandboxConfig };
    const answer = await this.#call("CreateContainer", "CreateContainerRequest", "CreateContainerResponse", request);
    if (answer.containerId === "") {
      throw new RuntimeError("Unknown", `ContainerId is not set for container "${config.metadata?.name ?? ""}"`);
    }
    return answer.containerId;
  }

  async startContainer(containerId: string): Promise<void> {
    await this.#call("StartContainer", "StartContainerRequest", "StartContainerResponse", { containerId });
  }

  async stopContainer(containerId: string, timeoutSeconds: number): Promise<void> {
    const timeoutMs = this.#options.requestTimeoutMs + timeoutSeconds * 1000;
    const request = { containerId, timeout: timeoutSeconds };
    await this.#call("StopContainer", "StopContainerRequest", "StopContainerResponse", request, timeoutMs);
  }

  async removeContainer(containerId: string): Promise<void> {
    await this.#call("RemoveContainer", "RemoveContainerRequest", "RemoveContainerResponse", { containerId });
  }

  async containerStatus(containerId: string): Promise<Cri<"ContainerStatus">> {
    const answer = await this.#call("ContainerStatus", "ContainerStatusRequest", "ContainerStatusResponse", { containerId });
    return present(answer.status, `container ${containerId}`);
  }

  async listContainers(filter: { labels?: LabelFilter; sandboxId?: string } | undefined): Promise<Cri<"Container">[]> {
    if (filter === undefined)
      return this.#callFor("ListContainers", "ListContainersRequest", { filter: {} }, this.#allContainers);
    const request = { filter: { podSandboxId: filter.sandboxId, labelSelector: filter.labels } };
    return (await this.#call("ListContainers", "ListContainersRequest", "ListContainersResponse", request)).containers;
  }

  async updateContainerResources(containerId: string, linux: CriInput<"LinuxContainerResources">): Promise<void> {
    await this.#call("UpdateContainerResources", "UpdateContainerResourcesRequest", "UpdateContainerResourcesResponse", {
      containerId,
      linux,
    });
  }

  async reopenContainerLog(containerId: string): Promise<void> {
    await this.#call("ReopenContainerLog", "ReopenContainerLogRequest", "ReopenContainerLogResponse", { containerId });
  }

  async execSync(containerId: string, cmd: readonly string[], timeoutSeconds: number): Promise<Cri<"ExecSyncResponse">> {
    const timeoutMs = timeoutSeconds === 0 ? longestCallMs : this.#options.requestTimeoutMs + timeoutSeconds * 1000;
    const request = { containerId, cmd, timeout: timeoutSeconds };
    return this.#call("ExecSync", "ExecSyncRequest", "ExecSyncResponse", request, timeoutMs);
  }

  async exec(request: CriInput<"ExecRequest">): Promise<string> {
    return (await this.#call("Exec", "ExecRequest", "ExecResponse", request)).url;
  }

  async attach(request: CriInput<"AttachRequest">): Promise<string> {
    return (await this.#call("Attach", "AttachRequest", "AttachResponse", request)).url;
  }

  async portForward(request: CriInput<"PortForwardRequest">): Promise<string> {
    return (await this.#call("PortForward", "PortForwardRequest", "PortForwardResponse", request)).url;
  }

  async listContainerStats(): Promise<Cri<"ContainerStats">[]> {
    return (await this.#call("ListContainerStats", "ListContainerStatsRequest", "ListContainerStatsResponse", {})).stats;
  }

  async listPodSandboxStats(): Promise<Cri<"PodSandboxStats">[]> {
    return (await this.#call("ListPodSandboxStats", "ListPodSandboxStatsRequest", "ListPodSandboxStatsResponse", {})).stats;
  }

  async listImages(): Promise<Cri<"Image">[]> {
    return (await this.#call("ListImages", "ListImagesRequest", "ListImagesResponse", {})).images;
  }

  async imageStatus(image: string): Promise<Cri<"Image"> | undefined> {
    try {
      const answer = await this.#call("ImageStatus", "ImageStatusRequest", "ImageStatusResponse", { image: { image } });
      return answer.image ?? undefined;
    } catch (err) {
      if (isRuntimeNotFound(err)) return undefined;
      throw err;
    }
  }

  async pullImage(
    image: string,
    auth: CriInput<"AuthConfig"> | undefined,
    sandboxConfig: CriInput<"PodSandboxConfig">,
  ): Promise<string> {
    const request = { image: { image }, auth, sandboxConfig };
    const answer = await this.#call("PullImage", "PullImageRequest", "PullImageResponse", request, longestCallMs);
    if (answer.imageRef === "") throw new RuntimeError("Unknown", `imageRef of image "${image}" is not set`);
    return answer.imageRef;
  }

  async removeImage(image: string): Promise<void> {
    await this.#call("RemoveImage", "RemoveImageRequest", "RemoveImageResponse", { image: { image } });
  }

  async imageFilesystems(): Promise<Cri<"FilesystemUsage">[]> {
    return (await this.#call("ImageFsInfo", "ImageFsInfoRequest", "ImageFsInfoResponse", {})).imageFilesystems;
  }

  close(): void {
    this.#runtimeChannel.close();
    if (this.#imageChannel !== this.#runtimeChannel) this.#imageChannel.close();
  }

  #call<Q extends CriMessageName, A extends CriMessageName>(
    method: string,
    requestType: Q,
    responseType: A,
    request: CriInput<Q>,
    timeoutMs?: number,
  ): Promise<Cri<A>> {
    return this.#callFor(method, requestType, request, { decode: (bytes) => decodeCri(responseType, bytes) }, timeoutMs);
  }

  async #callFor<Q extends CriMessageName, T>(
    method: string,
    requestType: Q,
    request: CriInput<Q>,
    answers: { decode(bytes: Buffer): T },
    timeoutMs = this.#options.requestTimeoutMs,
  ): Promise<T> {
    const service = isOneOf(criServices.ImageService, method) ? this.#imageService : this.#runtimeService;
    const started = performance.now();
    const once = (version: ApiVersion): Promise<T> =>
      unary(service.channel, `/runtime.${version}.${service.name}/${method}`, requestType, request, answers, timeoutMs);
    try {
      let answer: T;
      if (service.version !== undefined) {
        answer = await once(service.version);
      } else {
        try {
          answer = await once("v1");
          service.version = "v1";
        } catch (err) {
          if (!(err instanceof RuntimeError) || err.code !== "Unimplemented") throw err;
          answer = await once("v1alpha2");
          service.version = "v1alpha2";
        }
      }
      this.#options.onCall?.(method, performance.now() - started, undefined, request);
      return answer;
    } catch (err) {
      // The runtime may have been replaced by another version: negotiate again.
      if (err instanceof RuntimeError && err.code === "Unimplemented") service.version = undefined;
      this.#options.onCall?.(method, performance.now() - started, err, request);
      throw err;
    }
  }
}

/** The path of a unix socket endpoint. @throws Error for other endpoints */
export function socketPath(endpoint: string): string {
  const path = endpoint.startsWith("unix://") ? endpoint.slice("unix://".length) : endpoint;
  if (!path.startsWith("/")) throw new Error(`protocol of endpoint "${endpoint}" is not supported: only unix sockets are`);
  return path;
}

function openChannel(endpoint: string): GrpcChannel {
  return new GrpcChannel(`unix://${socketPath(endpoint)}`, { mostMessageBytes: maxMessageBytes, connectTimeoutMs });
}

const codec = newMessageCodec(criMessages, criEnums);

/** Exported for tests. */
export function encodeCri<N extends CriMessageName>(name: N, message: CriInput<N>): Buffer {
  return codec.encode(name, message);
}

/** Exported for tests. */
export function decodeCri<N extends CriMessageName>(name: N, bytes: Buffer): Cri<N> {
  return codec.decode(name, bytes);
}

async function unary<Q extends CriMessageName, T>(
  channel: GrpcChannel,
  path: string,
  requestType: Q,
  request: CriInput<Q>,
  answers: { decode(bytes: Buffer): T },
  timeoutMs: number,
): Promise<T> {
  try {
    return answers.decode(await channel.unary(path, encodeCri(requestType, request), timeoutMs));
  } catch (err) {
    const { code, details } = asCallError(err);
    throw new RuntimeError(grpcCodeNames[code] ?? "Unknown", details);
  }
}

function present<T>(value: T | null, what: string): T {
  if (value === null) throw new RuntimeError("Unknown", `status of ${what} is not set`);
  return value;
}
