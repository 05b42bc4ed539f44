import type { FeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { AgentConfig } from "../agent-config.ts";
import { openCredentialProviders } from "./credential-providers.ts";
import { ImagePuller } from "./images.ts";
import { nodeLogins } from "./node-logins.ts";
import type { ContainerRuntime } from "./runtime.ts";

/** Creates the image puller from the configuration, including credential provider plugins and the node's own credentials. */
export function openImagePuller(options: {
  config: AgentConfig;
  featureGates: FeatureGates;
  runtime: ContainerRuntime;
  clock: Clock;
  log: Logger;
}): ImagePuller {
  const { config, featureGates, runtime, clock, log } = options;
  const providers = config.imageCredentialProviders;
  const asksPlugins = providers.configFile !== "" && featureGates.enabled("KubeletCredentialProviders");
  return new ImagePuller({
    credentialProviders: asksPlugins ? openCredentialProviders({ ...providers, clock, log }) : undefined,
    nodeLogins: () => nodeLogins(config.rootDir),
    runtime,
    clock,
    serialize: config.serializeImagePulls,
    qps: config.registryQps,
    burst: config.registryBurst,
  });
}
