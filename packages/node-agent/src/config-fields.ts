import { resolve } from "node:path";
import { isJsonObject } from "@coxswain/apimachinery/meta/json-value";
import type { Written } from "./config.ts";

/** Fields of KubeletConfiguration that the agent acts on. */
const honouredFields = [
  "apiVersion",
  "kind",
  "address",
  "allowedUnsafeSysctls",
  "authentication",
  "authorization",
  "cgroupDriver",
  "cgroupRoot",
  "cgroupsPerQOS",
  "clusterDNS",
  "clusterDomain",
  "containerLogMaxFiles",
  "containerLogMaxSize",
  "contentType",
  "cpuCFSQuota",
  "cpuCFSQuotaPeriod",
  "cpuManagerPolicy",
  "cpuManagerPolicyOptions",
  "cpuManagerReconcilePeriod",
  "enableControllerAttachDetach",
  "enableDebuggingHandlers",
  "enableServer",
  "enforceNodeAllocatable",
  "eventBurst",
  "eventRecordQPS",
  "evictionHard",
  "evictionMaxPodGracePeriod",
  "evictionMinimumReclaim",
  "evictionPressureTransitionPeriod",
  "evictionSoft",
  "evictionSoftGracePeriod",
  "failSwapOn",
  "featureGates",
  "fileCheckFrequency",
  "hairpinMode",
  "healthzBindAddress",
  "healthzPort",
  "httpCheckFrequency",
  "imageGCHighThresholdPercent",
  "imageGCLowThresholdPercent",
  "imageMinimumGCAge",
  "iptablesDropBit",
  "iptablesMasqueradeBit",
  "kubeAPIBurst",
  "kubeAPIQPS",
  "kubeletCgroups",
  "kubeReserved",
  "kubeReservedCgroup",
  "makeIPTablesUtilChains",
  "maxOpenFiles",
  "maxPods",
  "memoryManagerPolicy",
  "memorySwap",
  "memoryThrottlingFactor",
  "nodeLeaseDurationSeconds",
  "nodeStatusMaxImages",
  "nodeStatusReportFrequency",
  "nodeStatusUpdateFrequency",
  "oomScoreAdj",
  "podCIDR",
  "podPidsLimit",
  "podsPerCore",
  "port",
  "protectKernelDefaults",
  "providerID",
  "qosReserved",
  "readOnlyPort",
  "registerNode",
  "registerWithTaints",
  "registryBurst",
  "registryPullQPS",
  "reservedMemory",
  "reservedSystemCPUs",
  "resolvConf",
  "rotateCertificates",
  "runOnce",
  "runtimeRequestTimeout",
  "seccompDefault",
  "serializeImagePulls",
  "serverTLSBootstrap",
  "showHiddenMetricsForVersion",
  "shutdownGracePeriod",
  "shutdownGracePeriodByPodPriority",
  "shutdownGracePeriodCriticalPods",
  "staticPodPath",
  "staticPodURL",
  "staticPodURLHeader",
  "syncFrequency",
  "systemCgroups",
  "systemReserved",
  "systemReservedCgroup",
  "tlsCertFile",
  "tlsCipherSuites",
  "tlsMinVersion",
  "tlsPrivateKeyFile",
  "topologyManagerPolicy",
  "topologyManagerScope",
  "volumePluginDir",
  "volumeStatsAggPeriod",
];

/** The others, with the value that says what happens here anyway: any other value has no effect, and that is told. */
const otherFields: Readonly<Record<string, unknown>> = {
  configMapAndSecretChangeDetectionStrategy: "Get",
  enableContentionProfiling: false,
  enableDebugFlagsHandler: undefined,
  enableProfilingHandler: undefined,
  enableSystemLogHandler: false,
  kernelMemcgNotification: false,
  logging: undefined,
  streamingConnectionIdleTimeout: undefined,
};

/** Fields that no KubeletConfiguration has. */
export function unknownFields(file: Written): string[] {
  return Object.keys(file).filter((name) => !honouredFields.includes(name) && !Object.hasOwn(otherFields, name));
}

/** Fields of the file that were set and do nothing, for the log at start. */
export function ineffectiveFields(file: Written): string[] {
  return Object.keys(file).filter((name) => Object.hasOwn(otherFields, name) && file[name] !== otherFields[name]);
}

/** Source: pkg/kubelet/apis/config/helpers.go KubeletConfigurationPathRefs */
const pathFields = [
  "staticPodPath",
  "authentication.x509.clientCAFile",
  "tlsCertFile",
  "tlsPrivateKeyFile",
  "resolvConf",
  "volumePluginDir",
];

/** @returns the file with its relative paths from `folder` on */
export function absolutePaths(file: Written, folder: string): Written {
  return pathFields.reduce((fields, path) => withAbsolute(fields, path.split("."), folder), file);
}

function withAbsolute(fields: Written, [first = "", ...rest]: readonly string[], folder: string): Written {
  const value = Object.hasOwn(fields, first) ? fields[first] : undefined;
  if (rest.length > 0) return isJsonObject(value) ? { ...fields, [first]: withAbsolute(value, rest, folder) } : fields;
  return typeof value === "string" && value !== "" ? { ...fields, [first]: resolve(folder, value) } : fields;
}
