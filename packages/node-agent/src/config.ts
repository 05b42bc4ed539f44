import { dirname, resolve } from "node:path";
import { readConfigFile } from "@coxswain/apimachinery/flags/config-file";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { metricsOptions } from "@coxswain/apimachinery/flags/metrics";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { absolutePaths, fieldAt, settingValues, unknownFields, type Written } from "@coxswain/apimachinery/flags/settings";
import type { Flag } from "@coxswain/apimachinery/flags/types";
import { joinedFailures } from "@coxswain/apimachinery/objects/errors/joined-failures";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import { parseDuration } from "@coxswain/apimachinery/objects/meta/time";
import type { AgentConfig } from "./agent-config.ts";
import { checkConfig } from "./config-checks.ts";
import { asConfigError } from "./config-error.ts";
import type { KubeletFlags } from "./flags.ts";
import { parseReservedMemory } from "./resources/memory/reserved-memory.ts";
import type { Taint } from "./settings/structures.ts";
import { agentSettings, kubeletConfiguration } from "./settings/table.ts";

/**
 * Merges flags over the file of `--config`. Without a file the defaults of the flags apply, with a file those of
 * KubeletConfiguration: e.g. anonymous authentication is disabled with a file and enabled with flags only.
 * @param set names of the flags that were given on the command line
 * @param local feature gates to use where neither file nor flags set them
 * @throws ConfigError
 * Source: cmd/kubelet/app/server.go, pkg/kubelet/apis/config/v1beta1/defaults.go
 */
export function newAgentConfig(
  flags: KubeletFlags,
  set: ReadonlySet<string>,
  local: Readonly<Record<string, boolean>> = {},
): AgentConfig {
  const flagOf = <T>({ flag = "" }: Flag<T>): T => flags[flag] as T; // cast: parsed by the row's own type
  checkDynamicConfigFlag(flagOf(agentSettings.dynamicConfigDir), flagOf(agentSettings.featureGates));
  const path = flagOf(agentSettings.configFile);
  const file = path === "" ? undefined : readConfiguration(path);
  /** cast: T is what the row's shape describes; `readConfiguration` has checked it. */
  const fieldOf = <T>({ field = "" }: Pick<Flag<unknown>, "field">): T | undefined => fieldAt(file ?? {}, field) as T | undefined;

  const settings = settingValues(agentSettings, { flags, set, file });
  const { authorizationMode: mode, containerRuntime } = settings;
  if (mode !== "AlwaysAllow" && mode !== "Webhook") throw new ConfigError(`unknown authorization-mode: ${mode}`);
  if (containerRuntime !== "remote") {
    throw new ConfigError(
      `container runtime ${JSON.stringify(containerRuntime)} is not built in: use --container-runtime=remote with --container-runtime-endpoint`,
    );
  }
  const logSize = Quantity.tryParse(settings.containerLogMaxSize);
  if (logSize === undefined) throw new ConfigError("invalid configuration: containerLogMaxSize is not a quantity");
  const featureGates = {
    ...local,
    ...fieldOf<Record<string, boolean>>(agentSettings.featureGates),
    ...flagOf(agentSettings.featureGates),
  };
  const gates = asConfigError(() => newFeatureGates("kubelet", featureGates));
  const { taints, manifestHeaders, reservedNumaMemory } = agentSettings;
  const config: AgentConfig = {
    ...settings,
    featureGates,
    authorizationMode: mode,
    bootstrapKubeconfig: settings.bootstrapKubeconfig || settings.formerBootstrapKubeconfig,
    registerWithTaints: taintsOf(flagOf(taints), fieldOf(taints)),
    staticPodUrlHeader: set.has("manifest-url-header")
      ? headersOf(flagOf(manifestHeaders))
      : (fieldOf<AgentConfig["staticPodUrlHeader"]>(manifestHeaders) ?? {}),
    containerLogMaxSizeBytes: logSize.value(),
    evictionSoftGraceMs: durationsOf(settings.evictionSoftGrace),
    reservedMemory: asConfigError(() => parseReservedMemory(flagOf(reservedNumaMemory), fieldOf(reservedNumaMemory))),
    imageCredentialProviders: {
      configFile: settings.imageCredentialProviderConfig,
      binDir: settings.imageCredentialProviderBinDir,
    },
    metrics: metricsOptions({
      "allow-metric-labels": settings.allowMetricLabels,
      "disabled-metrics": settings.disabledMetrics,
      "show-hidden-metrics-for-version": settings.showHiddenMetrics,
    }),
    written: file ?? {},
  };
  const problems = checkConfig(config, gates);
  if (problems.length > 0) throw new ConfigError(joinedFailures(problems));
  return config;
}

/**
 * Validated before the file is read: a feature gate in the file does not count.
 * Source: cmd/kubelet/app/options ValidateKubeletFlags
 */
function checkDynamicConfigFlag(folder: string, featureGates: Readonly<Record<string, boolean>>): void {
  const gates = asConfigError(() => newFeatureGates("kubelet", featureGates));
  if (folder === "" || gates.enabled("DynamicKubeletConfig")) return;
  throw new ConfigError("the DynamicKubeletConfig feature gate must be enabled in order to use the --dynamic-config-dir flag");
}

/**
 * Reads a KubeletConfiguration; relative paths are resolved against its directory.
 * @throws ConfigError when the file cannot be read, has another kind, or has values of the wrong type
 * Source: pkg/kubelet/kubeletconfig/configfiles/configfiles.go, pkg/kubelet/kubeletconfig/util/codec/codec.go
 */
export function readConfiguration(path: string): Written {
  const file = asConfigError(() => readConfigFile(path, "KubeletConfiguration", ["kubelet.config.k8s.io/v1beta1"]));
  try {
    unknownFields(kubeletConfiguration, file);
  } catch (err) {
    throw new ConfigError(`failed to load config file ${path}: failed to decode: ${messageOf(err)}`);
  }
  return absolutePaths(agentSettings, file, dirname(resolve(path)));
}

function durationsOf(written: Readonly<Record<string, unknown>>): Record<string, number> {
  const durations: Record<string, number> = {};
  for (const [name, text] of Object.entries(written)) {
    const ms = parseDuration(String(text));
    if (ms === undefined)
      throw new ConfigError(`invalid configuration: grace period of ${name} is not a duration: ${String(text)}`);
    durations[name] = ms;
  }
  return durations;
}

function headersOf(pairs: readonly (readonly [string, string])[]): Record<string, string[]> {
  const byName = Map.groupBy(pairs, ([name]) => name);
  return Object.fromEntries([...byName].map(([name, same]) => [name, same.map(([, value]) => value)]));
}

/** Parses `key=value:effect,…`; the file's field is used when the flag is empty. */
function taintsOf(flag: string, field: readonly Taint[] | undefined): readonly Taint[] {
  if (flag === "" && Array.isArray(field)) return field;
  return flag
    .split(",")
    .filter((text) => text !== "")
    .map((text) => {
      const match = /^([^=:]+)(?:=([^:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/.exec(text);
      if (match === null) throw new ConfigError(`invalid taint spec: ${text}, invalid taint effect`);
      const value = match[2];
      return { key: match[1]!, ...(value === undefined ? {} : { value }), effect: match[3]! };
    });
}
