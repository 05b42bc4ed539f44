import { joinedFailures } from "@coxswain/apimachinery/objects/errors/joined-failures";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { formatDuration } from "@coxswain/apimachinery/objects/meta/time";
import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { withDefaultTag } from "@coxswain/apimachinery/objects/validation/image-reference";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { type Backoff, newBackoff } from "../pod/backoff.ts";
import type { AnyContainer, NodePod } from "../pod/pod.ts";
import { ContainerError } from "./container-error.ts";
import type { CredentialProviders } from "./credential-providers.ts";
import type { Cri, CriInput } from "./cri-schema.ts";
import { type Login, loginsFor, loginsOf } from "./image-credentials.ts";
import type { ContainerRuntime } from "./runtime.ts";

export interface ImagePullerOptions {
  runtime: ContainerRuntime;
  clock: Clock;
  /** Pull images one at a time. */
  serialize: boolean;
  /** Pulls per second and burst; 0 per second means no limit. */
  qps: number;
  burst: number;
  /** Plugins whose credentials are tried after those of the Pod's pull secrets. */
  credentialProviders?: CredentialProviders | undefined;
  /** Credentials of the node, tried after those of the Pod. */
  nodeLogins?: (() => Promise<Login[]>) | undefined;
}

type RecordEvent = (type: "Normal" | "Warning", reason: string, message: string) => void;

const initialBackoffMs = 10_000;
const maxBackoffMs = 300_000;

/**
 * Pulls images with back-off per Pod and image. Source: pkg/kubelet/images/image_manager.go
 */
export class ImagePuller {
  readonly #options: ImagePullerOptions;
  readonly #backoff: Backoff;
  readonly #take: () => boolean;
  #lastPull: Promise<unknown> = Promise.resolve();

  constructor(options: ImagePullerOptions) {
    this.#options = options;
    this.#backoff = newBackoff({ initialMs: initialBackoffMs, maxMs: maxBackoffMs, clock: options.clock });
    this.#take = tokenBucket(options.qps, options.burst, options.clock);
  }

  /**
   * Ensures that the image of a container is present, according to its pull policy.
   * @throws ContainerError InvalidImageName, ErrImageNeverPull, ErrImagePull, ImagePullBackOff, ImageInspectError
   */
  async ensure(
    pod: NodePod,
    container: AnyContainer,
    pullSecrets: readonly Secret[],
    sandbox: CriInput<"PodSandboxConfig">,
    event: RecordEvent,
  ): Promise<{ imageRef: string; image: Cri<"Image"> | undefined }> {
    const image = withDefaultTag(container.image ?? "");
    if (image === undefined) {
      const message = `Failed to apply default image tag ${JSON.stringify(container.image ?? "")}: couldn't parse image reference ${JSON.stringify(container.image ?? "")}: invalid reference format`;
      event("Warning", "InspectFailed", message);
      throw new ContainerError("InvalidImageName", message);
    }
    const policy = container.imagePullPolicy ?? "IfNotPresent";
    let present: Cri<"Image"> | undefined;
    try {
      present = await this.#options.runtime.imageStatus(image);
    } catch (err) {
      const message = `Failed to inspect image ${JSON.stringify(container.image)}: ${messageOf(err)}`;
      event("Warning", "InspectFailed", message);
      throw new ContainerError("ImageInspectError", message);
    }
    if (policy === "Never" || (policy === "IfNotPresent" && present !== undefined)) {
      if (present !== undefined) {
        event("Normal", "Pulled", `Container image ${JSON.stringify(container.image)} already present on machine`);
        return { imageRef: present.id, image: present };
      }
      const message = `Container image ${JSON.stringify(container.image)} is not present with pull policy of Never`;
      event("Warning", "ErrImageNeverPull", message);
      throw new ContainerError("ErrImageNeverPull", message);
    }

    const key = `${pod.metadata.uid}_${container.image}`;
    if (this.#backoff.isWaiting(key)) {
      const message = `Back-off pulling image ${JSON.stringify(container.image)}`;
      event("Normal", "BackOff", message);
      throw new ContainerError("ImagePullBackOff", message);
    }
    event("Normal", "Pulling", `Pulling image ${JSON.stringify(container.image)}`);
    const started = this.#options.clock.monotonic();
    let imageRef: string;
    try {
      if (!this.#take()) throw new Error("pull QPS exceeded");
      imageRef = await this.#inTurn(() => this.#pullWithLogins(image, pullSecrets, sandbox));
    } catch (err) {
      const reason = messageOf(err);
      event("Warning", "Failed", `Failed to pull image ${JSON.stringify(container.image)}: ${reason}`);
      this.#backoff.next(key);
      throw new ContainerError("ErrImagePull", reason);
    }
    const tookMs = this.#options.clock.monotonic() - started;
    event("Normal", "Pulled", `Successfully pulled image ${JSON.stringify(container.image)} in ${formatDuration(tookMs)}`);
    this.#backoff.collect();
    return { imageRef, image: await this.#options.runtime.imageStatus(image) };
  }

  /** Removes expired back-offs of pulls; called periodically. */
  collect(): void {
    this.#backoff.collect();
  }

  /** Runs pulls one after the other when they are serialized. */
  #inTurn<T>(pull: () => Promise<T>): Promise<T> {
    if (!this.#options.serialize) return pull();
    const turn = this.#lastPull.then(pull);
    this.#lastPull = turn.catch(() => undefined); // the next pull does not depend on the result
    return turn;
  }

  async #pullWithLogins(image: string, secrets: readonly Secret[], sandbox: CriInput<"PodSandboxConfig">): Promise<string> {
    const plugins = (await this.#options.credentialProviders?.loginsFor(image)) ?? [];
    const ofNode = (await this.#options.nodeLogins?.()) ?? [];
    const logins = [loginsOf(secrets), ofNode, plugins].flatMap((some) => loginsFor(image, some));
    if (logins.length === 0) return this.#options.runtime.pullImage(image, undefined, sandbox);
    const failures: unknown[] = [];
    for (const login of logins) {
      try {
        return await this.#options.runtime.pullImage(image, login, sandbox);
      } catch (err) {
        failures.push(err);
      }
    }
    throw new Error(joinedFailures(failures.map((err) => messageOf(err))));
  }
}

function tokenBucket(perSecond: number, burst: number, clock: Clock): () => boolean {
  if (perSecond <= 0) return () => true;
  let tokens = burst;
  let last = clock.monotonic();
  return () => {
    const now = clock.monotonic();
    tokens = Math.min(burst, tokens + ((now - last) / 1000) * perSecond);
    last = now;
    if (tokens < 1) return false;
    tokens--;
    return true;
  };
}
