import { readFileSync } from "node:fs";
import type { LeaderElectionConfig } from "@coxswain/apimachinery/controller/leader-election";
import { checkDurations } from "@coxswain/apimachinery/controller/leader-election";
import { resourceLockKinds } from "@coxswain/apimachinery/controller/resource-lock";
import { type FeatureGates, newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { newRuleCheck } from "@coxswain/apimachinery/flags/rule-check";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { type Settings, type SettingValues, valuesOfFlags } from "@coxswain/apimachinery/flags/settings";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isOneOf } from "@coxswain/apimachinery/process/narrowing/keys";
import { enabledControllers } from "./catalogue.ts";
import { cloudControllers } from "./cloud/without-cloud.ts";
import { certificateSigningOf } from "./config/certificate-signing.ts";
import { cloudConfigOf } from "./config/cloud.ts";
import type { ControllerManagerConfig } from "./config/controller-manager-config.ts";
import { volumesConfigOf } from "./config/volumes.ts";
import { nodeIpamConfigOf } from "./controllers/nodeipam/config.ts";
import { concurrencySettings } from "./flags/concurrency.ts";
import { endpointSettings, endpointSliceSettings, mirroringSettings } from "./flags/endpoints.ts";
import {
  cloudSettings,
  genericSettings,
  leaderElectionSettings,
  nodeCidrSettings,
  nodeMonitorSettings,
  serverSettings,
} from "./flags/generic.ts";
import { nodeIpamSettings, nodeLifecycleSettings } from "./flags/nodes.ts";
import {
  autoscalingRuleSettings,
  autoscalingSettings,
  garbageCollectorSettings,
  namespaceSettings,
  podGcSettings,
  quotaSettings,
} from "./flags/workloads.ts";
import { type ControllerManagerFlags, flagTable } from "./flags.ts";
import { leaderMigrationOf } from "./leader-migration.ts";

/**
 * Validates the flags and computes the configuration; reads the PEM, template and migration files that flags name.
 * @param featureGates defaults to the gates of 1.23
 * @param set names of the flags given on the command line
 * @throws ConfigError with all validation errors in one message
 */
export function completeConfig(
  flags: ControllerManagerFlags,
  featureGates: FeatureGates = newFeatureGates("kube-controller-manager", {}),
  set: ReadonlySet<string> = new Set(),
): ControllerManagerConfig {
  const errors: string[] = [];
  const of = <T extends Settings>(settings: T): SettingValues<T> => valuesOfFlags(settings, flags);
  const leaderElection: LeaderElectionConfig = of(leaderElectionSettings);
  if (leaderElection.enabled) errors.push(...leaderElectionErrors(leaderElection));
  const leaderMigration = leaderMigrationOf(flags, leaderElection, errors);
  const cloud = cloudConfigOf(of(cloudSettings), errors);
  const controllers = enabledControllers(flags.controllers, errors, featureGates.enabled);
  if (cloud.external) for (const name of cloudControllers) controllers.delete(name);
  const nodeIpam = nodeIpamConfigOf({ ...of(nodeCidrSettings), ...of(nodeIpamSettings) }, errors, set);
  const rootCa = readPem(flags["root-ca-file"], "--root-ca-file", errors);
  const serviceAccountKey = readPem(flags["service-account-private-key-file"], "--service-account-private-key-file", errors);
  const certificateSigning = certificateSigningOf(flags, errors);
  const rules = newRuleCheck(flagTable.table, flags);
  errors.push(...rules.of("attach-detach-reconcile-sync-period", "volume-host-cidr-denylist"));
  const volumes = volumesConfigOf(flags, errors);
  errors.push(...rules.of("concurrent-ephemeralvolume-syncs"), ...rules.others());
  if (errors.length > 0) throw new ConfigError(errors.join("; "));
  return {
    ...of(serverSettings),
    ...of(genericSettings),
    ...of(endpointSettings),
    ...of(endpointSliceSettings),
    ...of(garbageCollectorSettings),
    ...of(namespaceSettings),
    ...of(quotaSettings),
    ...of(podGcSettings),
    controllers,
    leaderElection,
    leaderMigration,
    cloud,
    concurrency: of(concurrencySettings),
    mirroring: of(mirroringSettings),
    horizontalPodAutoscaler: { ...of(autoscalingSettings), rules: of(autoscalingRuleSettings) },
    nodeIpam,
    nodeLifecycle: { ...of(nodeMonitorSettings), ...of(nodeLifecycleSettings) },
    rootCa,
    serviceAccountKey,
    certificateSigning,
    volumes,
  };
}

function leaderElectionErrors(config: LeaderElectionConfig): string[] {
  const durations = checkDurations(config);
  const errors = durations === undefined ? [] : [durations];
  if (!isOneOf(resourceLockKinds, config.resourceLock)) errors.push(`Invalid lock-type ${config.resourceLock}`);
  if (config.resourceName === "") errors.push("--leader-elect-resource-name must not be empty");
  if (config.resourceNamespace === "") errors.push("--leader-elect-resource-namespace must not be empty");
  return errors;
}

function readPem(path: string, flag: string, errors: string[]): string | undefined {
  if (path === "") return undefined;
  try {
    const text = readFileSync(path, "utf8");
    if (!text.includes("-----BEGIN ")) errors.push(`${flag}: ${path} holds no PEM block`);
    return text;
  } catch (err) {
    errors.push(`${flag}: ${messageOf(err)}`);
    return undefined;
  }
}

/** The configuration that /configz shows: without keys and certificates. */
export function shownConfig(config: ControllerManagerConfig): object {
  const { rootCa: _, serviceAccountKey: __, certificateSigning: ___, controllers, ...shown } = config;
  return { ...shown, controllers: [...controllers] };
}
