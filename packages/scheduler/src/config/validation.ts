import type { LeaderElectionConfig } from "@coxswain/apimachinery/controller/leader-election";
import type { Flag } from "@coxswain/apimachinery/flags/types";
import {
  child,
  duplicate,
  type FieldError,
  index,
  invalidValue,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { qualifiedNameProblems } from "@coxswain/apimachinery/objects/validation/qualified-name";
import { isExtendedResource } from "@coxswain/apimachinery/objects/validation/resource-names";
import { connectionSettings, schedulingSettings } from "../settings.ts";
import { validateArgs } from "./argument-rows.ts";
import type { ExtenderConfig } from "./file.ts";
import type { ProfileConfig, SchedulerConfig } from "./scheduler-config.ts";

/**
 * Returns all errors, with upstream's field paths and texts.
 * @param byVolumeCapacity whether the feature gate VolumeCapacityPriority is on
 * Source: pkg/scheduler/apis/config/validation/validation.go
 */
export function validateConfig(config: SchedulerConfig, byVolumeCapacity: boolean): FieldError[] {
  const { podInitialBackoffSeconds: initial, podMaxBackoffSeconds: longest } = config;
  const errors = broken(connectionSettings.burst, config.clientConnection.burst);
  errors.push(...validateLeaderElection(config.leaderElection));
  errors.push(...broken(schedulingSettings.parallelism, config.parallelism));
  errors.push(...validateProfiles(config.profiles, byVolumeCapacity));
  for (const field of ["healthzBindAddress", "metricsBindAddress"] as const)
    errors.push(...validateAddress(config[field], field));
  errors.push(...broken(schedulingSettings.percentageOfNodesToScore, config.percentageOfNodesToScore));
  errors.push(...broken(schedulingSettings.podInitialBackoffSeconds, initial));
  if (longest < initial)
    errors.push(invalidValue("podMaxBackoffSeconds", longest, "must be greater than or equal to PodInitialBackoffSeconds"));
  return [...errors, ...validateExtenders(config.extenders)];
}

function broken<T>(row: Flag<T>, value: T): FieldError[] {
  const detail = row.must?.problem(value, row);
  return detail === undefined ? [] : [invalidValue(row.field ?? "", value, detail)];
}

/** Source: k8s.io/component-base/config/validation ValidateLeaderElectionConfiguration */
function validateLeaderElection(config: LeaderElectionConfig): FieldError[] {
  if (!config.enabled) return [];
  const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = config;
  const errors: FieldError[] = [];
  const path = (name: string): string => child("leaderElection", name);
  const seconds = (ms: number): string => `${ms / 1000}s`;
  const positive = { leaseDuration: leaseDurationMs, renewDeadline: renewDeadlineMs, retryPeriod: retryPeriodMs };
  for (const [name, value] of Object.entries(positive))
    if (value <= 0) errors.push(invalidValue(path(name), seconds(value), "must be greater than zero"));
  if (leaseDurationMs < renewDeadlineMs)
    errors.push(
      invalidValue(path("leaseDuration"), seconds(renewDeadlineMs), "LeaseDuration must be greater than RenewDeadline"),
    );
  if (renewDeadlineMs < retryPeriodMs)
    errors.push(invalidValue(path("renewDeadline"), seconds(retryPeriodMs), "RenewDeadline must be greater than RetryPeriod"));
  for (const name of ["resourceLock", "resourceNamespace", "resourceName"] as const)
    if (config[name] === "") errors.push(invalidValue(path(name), "", `${name} is required`));
  return errors;
}

function validateProfiles(profiles: readonly ProfileConfig[], byVolumeCapacity: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const first = new Map<string, number>();
  for (const [i, profile] of profiles.entries()) {
    const path = index("profiles", i);
    if (profile.schedulerName === "") errors.push(required(child(path, "schedulerName")));
    errors.push(...validatePluginConfig(profile, path, byVolumeCapacity));
    const before = first.get(profile.schedulerName);
    // The reported value is the path of the earlier profile, not the name, as upstream.
    if (before !== undefined)
      errors.push(duplicate(child(path, "schedulerName"), child(index("profiles", before), "schedulerName")));
    first.set(profile.schedulerName, i);
  }
  return [...errors, ...validateQueueSort(profiles)];
}

function validatePluginConfig({ configured, args }: ProfileConfig, path: string, byVolumeCapacity: boolean): FieldError[] {
  const seen = new Set<string>();
  return configured.flatMap((name, i) => {
    const place = index(child(path, "pluginConfig"), i);
    if (seen.has(name)) return [duplicate(place, name)];
    seen.add(name);
    return validateArgs(name, args, child(place, "args"), byVolumeCapacity);
  });
}

/** All profiles share one queue, so they need the same queue sort plugin. */
function validateQueueSort(profiles: readonly ProfileConfig[]): FieldError[] {
  const [first, ...others] = profiles.map(({ plugins }) => plugins.queueSort);
  const errors: FieldError[] = [];
  const enabled = first?.enabled.length ?? 0;
  if (enabled > 1)
    errors.push(invalidValue("profiles[0].plugins.queueSort.Enabled", enabled, "only one queue sort plugin can be enabled"));
  for (const [i, set] of others.entries()) {
    if (JSON.stringify(set) !== JSON.stringify(first))
      errors.push(invalidValue(`profiles[${i + 1}].plugins.queueSort`, set, "has to match for all profiles"));
  }
  return errors;
}

/** Insecure serving was removed: only the empty address and port 0 are valid. */
function validateAddress(address: string, field: string): FieldError[] {
  if (address === "") return [];
  const at = address.lastIndexOf(":");
  const port = address.slice(at + 1);
  if (at < 0) return [invalidValue(field, address, `address ${address}: missing port in address`)];
  if (!/^\d{1,9}$/.test(port))
    return [invalidValue(field, address, `strconv.Atoi: parsing ${JSON.stringify(port)}: invalid syntax`)];
  return Number(port) === 0 ? [] : [invalidValue(field, address, "must be empty or with an explicit 0 port")];
}

function validateExtenders(extenders: readonly ExtenderConfig[]): FieldError[] {
  const errors: FieldError[] = [];
  const managed = new Set<string>();
  for (const [i, { prioritizeVerb, weight = 0, managedResources = [] }] of extenders.entries()) {
    const path = index("extenders", i);
    if (prioritizeVerb && weight <= 0)
      errors.push(invalidValue(child(path, "weight"), weight, "must have a positive weight applied to it"));
    for (const [j, { name = "" }] of managedResources.entries()) {
      const place = child(index(child(path, "managedResources"), j), "name");
      errors.push(...validateExtendedResource(name, place));
      if (managed.has(name)) errors.push(invalidValue(place, name, "duplicate extender managed resource name"));
      managed.add(name);
    }
  }
  const binders = extenders.filter(({ bindVerb }) => bindVerb).length;
  if (binders > 1)
    errors.push(
      invalidValue("extenders", `found ${binders} extenders implementing bind`, "only one extender can implement bind"),
    );
  return errors;
}

function validateExtendedResource(name: string, path: string): FieldError[] {
  const wrong = qualifiedNameProblems(name);
  if (wrong.length > 0) return wrong.map((detail) => invalidValue(path, name, detail));
  return isExtendedResource(name) ? [] : [invalidValue(path, name, "is an invalid extended resource name")];
}
