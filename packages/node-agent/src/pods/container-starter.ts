import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { DownwardContext } from "../environment/downward-api-env.ts";
import { environmentOf } from "../environment/env-vars.ts";
import { type AnyContainer, type ContainerKind, describePod, isStaticPod, type NodePod } from "../pod/pod.ts";
import { containerResources } from "../resources/container-resources.ts";
import { ContainerError } from "../runtime/container-error.ts";
import { type ContainerOptions, startContainer } from "../runtime/containers.ts";
import type { CriInput } from "../runtime/cri-schema.ts";
import type { ImagePuller } from "../runtime/images.ts";
import type { PodRecord } from "../runtime/pod-record.ts";
import type { SetUpVolume } from "../volumes/volume.ts";
import { groupsOfVolumes } from "../volumes/volume-groups.ts";
import { containerDevices, containerMounts } from "./container-options.ts";
import type { PodRunnerOptions } from "./pod-runner-options.ts";

/** The state of the Pod in which a container is started. */
export interface StartContext {
  record: PodRecord;
  sandboxId: string;
  config: CriInput<"PodSandboxConfig">;
  ips: readonly string[];
  mounted: ReadonlyMap<string, SetUpVolume>;
  pullSecrets: readonly Secret[];
  /** Aborted when the Pod has to terminate. */
  signal: AbortSignal;
}

/** Starts single containers of a Pod whose sandbox and volumes exist. */
export class ContainerStarter {
  readonly #options: PodRunnerOptions;
  readonly #downward: (ips: readonly string[]) => DownwardContext;

  /** @param downward downward API values of a Pod with these IPs */
  constructor(options: PodRunnerOptions, downward: (ips: readonly string[]) => DownwardContext) {
    this.#options = options;
    this.#downward = downward;
  }

  /** Pulls the image, prepares environment, mounts and resources, and starts the container. @throws ContainerError */
  async start(pod: NodePod, container: AnyContainer, kind: ContainerKind, context: StartContext): Promise<void> {
    const options = this.#options;
    const { containers } = options;
    const event = (type: "Normal" | "Warning", reason: string, message: string): void =>
      containers.event(pod, { name: container.name, kind }, type, reason, message);
    let found: Awaited<ReturnType<ImagePuller["ensure"]>>;
    try {
      found = await options.images.ensure(pod, container, context.pullSecrets, context.config, event);
    } catch (err) {
      event("Warning", "Failed", `Error: ${err instanceof ContainerError ? err.reason : messageOf(err)}`);
      throw err;
    }
    const { node } = options;
    await startContainer(containers, {
      pod,
      container,
      kind,
      record: context.record,
      sandboxId: context.sandboxId,
      sandboxConfig: context.config,
      podIp: context.ips[0] ?? "",
      imageRef: found.imageRef,
      image: found.image,
      signal: context.signal,
      resources: {
        ...containerResources(pod, container, node),
        ...options.resources?.placementOf(pod, container),
        unified: options.cgroups.unifiedOf(container),
      },
      options: () => this.#containerOptions(pod, container, context),
    });
    options.resources?.started(pod, container);
  }

  /** Environment, mounts, devices and annotations of the new container. @throws Error while something they are made of is missing */
  async #containerOptions(pod: NodePod, container: AnyContainer, context: StartContext): Promise<ContainerOptions> {
    const options = this.#options;
    const { containers, node } = options;
    // Static Pods do not wait for the services informer: the API server itself may be one of them.
    const services = options.services() ?? (isStaticPod(pod) ? [] : undefined);
    if (services === undefined) throw new Error("services have not yet been read at least once, cannot construct envvars");
    const environment = await environmentOf(pod, container, {
      ...this.#downward(context.ips),
      objects: options.objects,
      turns: options.turns,
      services,
      onInvalidNames: (objectKind, name, keys) => {
        const message = `Keys [${keys.join(", ")}] from the EnvFrom ${objectKind === "ConfigMap" ? "configMap" : "secret"} ${name} were skipped since they are considered invalid environment variable names.`;
        containers.event(pod, undefined, "Warning", "InvalidEnvironmentVariableNames", message);
      },
    });
    const mounts = await containerMounts(pod, container, {
      podDir: options.volumes.podDir(pod.metadata.uid),
      podIps: context.ips,
      clusterDomain: node.clusterDomain,
      volumes: context.mounted,
      environment,
      mounter: options.mounter,
    });
    const access = await options.resources?.accessOf(pod, container);
    return {
      // Variables in the Pod's spec override those of devices.
      environment: new Map([...Object.entries(access?.envs ?? {}), ...environment]),
      mounts: [...(access?.mounts ?? []).map(({ readOnly: readonly, ...mount }) => ({ ...mount, readonly })), ...mounts],
      devices: [...(access?.devices ?? []), ...containerDevices(container, context.mounted)],
      volumeGroups: groupsOfVolumes(pod, context.mounted),
      annotations: access?.annotations ?? {},
    };
  }

  /** Missing secrets are skipped: the registry may not require credentials. */
  async pullSecretsOf(pod: NodePod): Promise<Secret[]> {
    const { objects, log } = this.#options;
    const secrets: Secret[] = [];
    for (const { name } of pod.spec.imagePullSecrets ?? []) {
      try {
        if (name) secrets.push(await objects.secret(pod.metadata.namespace, name));
      } catch (err) {
        if (!isNotFound(err)) log.warn("cannot read a pull secret", { pod: describePod(pod), secret: name });
      }
    }
    return secrets;
  }
}
