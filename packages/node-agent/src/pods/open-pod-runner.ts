import { join } from "node:path";
import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { AgentConfig } from "../agent-config.ts";
import { readHostDns } from "../environment/host-dns.ts";
import type { ApiConnection } from "../node/api-connection.ts";
import type { NodeIdentity } from "../node/identity.ts";
import { newHookRunner } from "../probes/lifecycle-hooks.ts";
import type { NodeFacts } from "../resources/node-facts.ts";
import type { ContainerDependencies } from "../runtime/containers.ts";
import { openImagePuller } from "../runtime/open-image-puller.ts";
import { runtimeHandler } from "../runtime/runtime-class.ts";
import type { MirrorPods } from "../status/mirror-pods.ts";
import { newPodRunner, type PodRunner } from "./pod-runner.ts";
import type { PodRunnerOptions } from "./pod-runner-options.ts";

/** Options that are derived from configuration and machine. */
type Decided = "containers" | "images" | "node" | "keepTerminatedPodVolumes" | "dns" | "services" | "runtimeHandler" | "prepare";

export interface OpenRunnerOptions
  extends Omit<PodRunnerOptions, Decided>,
    Pick<ContainerDependencies, "runtime" | "event" | "podLogsDir" | "containerLogsDir">,
    Pick<NodeFacts, "allocatable"> {
  config: AgentConfig;
  featureGates: FeatureGates;
  identity: NodeIdentity;
  /** Undefined in standalone mode, which has neither services nor RuntimeClasses. */
  api: Pick<ApiConnection, "client" | "services"> | undefined;
  mirrors: MirrorPods | undefined;
}

/** Creates the Pod runner from configuration and machine. */
export async function openPodRunner(options: OpenRunnerOptions): Promise<PodRunner> {
  const { config, featureGates, identity, api, mirrors, runtime, clock, log } = options;
  const { clusterDns, clusterDomain, keepTerminatedPodVolumes } = config;
  const { ips } = identity;
  const host = await readHostDns(config.resolvConf, log);
  return newPodRunner({
    ...options,
    keepTerminatedPodVolumes,
    containers: {
      runtime,
      clock,
      log,
      event: options.event,
      runHook: newHookRunner(runtime),
      podLogsDir: options.podLogsDir,
      containerLogsDir: options.containerLogsDir,
      seccompDefault: config.seccompDefault && featureGates.enabled("SeccompDefault"),
      seccompRoot: join(config.rootDir, "seccomp"),
    },
    images: openImagePuller({ config, featureGates, runtime, clock, log }),
    node: nodeFacts(options),
    dns: () => ({ clusterDns, clusterDomain, host, hostIps: ips }),
    services: () => (api === undefined ? [] : api.services.synced ? api.services.lister.list() : undefined),
    runtimeHandler: (pod) => runtimeHandler(api?.client, pod),
    appArmor: options.appArmor,
    prepare: async (pod) => mirrors?.ensure(pod),
  });
}

function nodeFacts({ config, featureGates, identity, allocatable }: OpenRunnerOptions): NodeFacts {
  const { machine, nodeName, ips } = identity;
  return {
    name: nodeName,
    ips: () => ips,
    allocatable,
    memoryCapacityBytes: machine.memoryBytes,
    cfsQuota: config.cpuCfsQuota,
    cfsPeriodUs: config.cpuCfsPeriodMs * 1000,
    pageSizes: machine.pageSizes,
    swap: !featureGates.enabled("NodeSwap") ? undefined : config.swapBehavior === "UnlimitedSwap" ? "any" : "limited",
    clusterDomain: config.clusterDomain,
  };
}
