import type { FlagTable } from "@coxswain/apimachinery/flags/flags";
import { bool, duration, int, int32, string, structure } from "@coxswain/apimachinery/flags/types";
import { isKeyOf } from "@coxswain/apimachinery/process/narrowing/keys";
import ignored from "./ignored-flags.json" with { type: "json" };
import { inFile, leaving } from "./notices.ts";

const notices = { inFile, leaving };
const types = { bool, duration, int, int32, string };

/**
 * Flags that are accepted without effect: those of the docker runtime, which is not built in, those of cAdvisor, and unimplemented
 * ones.
 */
export const ignoredFlags: FlagTable = Object.fromEntries(
  ignored.map(({ type, deprecated, ...row }) => {
    const notice = isKeyOf(notices, deprecated) ? { deprecated: notices[deprecated] } : {};
    if (!isKeyOf(types, type)) throw new Error(`flag ${row.flag}: there is no type ${type}`);
    return [row.flag, types[type]({ ...row, ...notice, wired: false } as never)]; // cast: a row's default is of its type
  }),
);

/** Fields of the configuration file without effect, and their flags. */
export const settingsWithoutEffect = {
  contentionProfiling: bool({
    flag: "contention-profiling",
    field: "enableContentionProfiling",
    deprecated: leaving,
    wired: false,
    neutral: false,
    help: "Turns lock contention profiling on, if profiling is on.",
  }),
  kernelMemcgNotification: bool({
    flag: "kernel-memcg-notification",
    field: "kernelMemcgNotification",
    deprecated: inFile,
    wired: false,
    neutral: false,
    help: "Uses the kernel's memory cgroup notification for eviction thresholds instead of polling.",
  }),
  streamingConnectionIdleTimeout: duration({
    flag: "streaming-connection-idle-timeout",
    field: "streamingConnectionIdleTimeout",
    default: "4h0m0s",
    deprecated: leaving,
    wired: false,
    help: "How long streaming connections may be idle before they are closed. 0: for ever.",
  }),
  configMapAndSecretChangeDetectionStrategy: string({
    field: "configMapAndSecretChangeDetectionStrategy",
    default: "Get",
    neutral: "Get",
    wired: false,
    help: "How ConfigMaps and Secrets of pods are kept up to date: they are read when a pod needs them.",
  }),
  enableDebugFlagsHandler: bool({
    field: "enableDebugFlagsHandler",
    default: true,
    wired: false,
    help: "Serves /debug/flags, which changes the verbosity of logs.",
  }),
  enableProfilingHandler: bool({
    field: "enableProfilingHandler",
    default: true,
    wired: false,
    help: "Serves profiles under /debug/pprof.",
  }),
  logging: structure<unknown>({
    field: "logging",
    shape: "any",
    default: undefined,
    wired: false,
    help: "The format of logs, which flags set.",
  }),
};
