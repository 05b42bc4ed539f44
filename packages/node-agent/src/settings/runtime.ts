import { atLeast, between, notNegative } from "@coxswain/apimachinery/flags/rules";
import { bool, duration, int32, string } from "@coxswain/apimachinery/flags/types";
import { inFile, leaving } from "./notices.ts";

/** The container runtime, images, ended containers and logs. */
export const runtimeSettings = {
  containerRuntime: string({
    flag: "container-runtime",
    default: "docker",
    help: "The container runtime to use. Possible values: 'docker', 'remote'.",
  }),
  runtimeEndpoint: string({
    flag: "container-runtime-endpoint",
    default: "unix:///var/run/dockershim.sock",
    help: "The endpoint of the remote runtime service: a unix socket.",
  }),
  imageEndpoint: string({
    flag: "image-service-endpoint",
    help: "The endpoint of the remote image service. Empty: that of --container-runtime-endpoint.",
  }),
  sandboxImage: string({
    flag: "pod-infra-container-image",
    default: "k8s.gcr.io/pause:3.6",
    help: "The image that image collection never removes, because the runtime's pods stand on it.",
  }),
  runtimeRequestTimeoutMs: duration({
    flag: "runtime-request-timeout",
    field: "runtimeRequestTimeout",
    default: "2m0s",
    deprecated: leaving,
    zeroIsDefault: "inFile",
    help: "Time limit of runtime requests but long-running ones (pull, logs, exec, attach).",
  }),
  serializeImagePulls: bool({
    flag: "serialize-image-pulls",
    field: "serializeImagePulls",
    default: true,
    deprecated: leaving,
    help: "Pulls images one at a time.",
  }),
  registryBurst: int32({
    flag: "registry-burst",
    field: "registryBurst",
    default: 10,
    deprecated: inFile,
    zeroIsDefault: "always",
    must: notNegative,
    help: "Burst of image pulls, while they stay below --registry-qps on average. Only used if --registry-qps > 0.",
  }),
  registryQps: int32({
    flag: "registry-qps",
    field: "registryPullQPS",
    default: 5,
    deprecated: inFile,
    must: notNegative,
    help: "Limit of image pulls a second. 0: no limit.",
  }),
  imageCredentialProviderConfig: string({
    flag: "image-credential-provider-config",
    help: "The file with the configuration of credential provider plugins.",
  }),
  imageCredentialProviderBinDir: string({
    flag: "image-credential-provider-bin-dir",
    help: "The directory of the binaries of credential provider plugins.",
  }),
  imageMinAgeMs: duration({
    flag: "minimum-image-ttl-duration",
    field: "imageMinimumGCAge",
    default: "2m0s",
    deprecated: inFile,
    zeroIsDefault: "inFile",
    help: "Least age of an unused image before it is collected.",
  }),
  imageGcHighThreshold: int32({
    flag: "image-gc-high-threshold",
    field: "imageGCHighThresholdPercent",
    default: 85,
    deprecated: inFile,
    must: between(0, 100),
    help: "The percentage of disk usage above which images are always collected, from 0 to 100. 100 turns it off.",
  }),
  imageGcLowThreshold: int32({
    flag: "image-gc-low-threshold",
    field: "imageGCLowThresholdPercent",
    default: 80,
    deprecated: inFile,
    must: between(0, 100),
    help: "The percentage of disk usage below which images are never collected: what collection aims at, from 0 to 100. At most --image-gc-high-threshold.",
  }),
  containerLogMaxSize: string({
    flag: "container-log-max-size",
    field: "containerLogMaxSize",
    default: "10Mi",
    deprecated: inFile,
    help: "The size at which a container's log file is rotated (10Mi, say). Only for a remote runtime.",
  }),
  containerLogMaxFiles: int32({
    flag: "container-log-max-files",
    field: "containerLogMaxFiles",
    default: 5,
    deprecated: inFile,
    must: atLeast(2),
    help: "The largest number of log files of a container, at least 2. Only for a remote runtime.",
  }),
  maxDeadPerContainer: int32({
    flag: "maximum-dead-containers-per-container",
    default: 1,
    deprecated: inFile,
    help: "The largest number of old instances of a container to keep.",
  }),
  maxDead: int32({
    flag: "maximum-dead-containers",
    default: -1,
    deprecated: inFile,
    help: "The largest number of old container instances to keep in all. Negative: no limit.",
  }),
  deadMinAgeMs: duration({
    flag: "minimum-container-ttl-duration",
    deprecated: inFile,
    help: "Least age of an ended container before it is collected.",
  }),
};
