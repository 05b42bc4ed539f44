import { notNegative } from "@coxswain/apimachinery/flags/rules";
import { bool, int, mapStringBool, quantity, string } from "@coxswain/apimachinery/flags/types";
import { inFile, leaving } from "./notices.ts";

/** The process: its files, gates and limits. */
export const processSettings = {
  configFile: string({ flag: "config", help: "The path to the configuration file." }),
  dynamicConfigDir: string({
    flag: "dynamic-config-dir",
    deprecated:
      "Feature DynamicKubeletConfig is deprecated in 1.22 and will not move to GA. It is planned to be removed from Kubernetes in the version 1.24 or later. Please use alternative ways to update kubelet configuration.",
    help: "The directory in which configurations are kept that the node's spec.configSource names. Needs the feature gate DynamicKubeletConfig.",
  }),
  featureGates: mapStringBool({
    flag: "feature-gates",
    field: "featureGates",
    deprecated: inFile,
    help: "A set of key=value pairs that turn features on or off.",
  }),
  rootDir: string({
    flag: "root-dir",
    default: "/var/lib/kubelet",
    help: "The directory of the kubelet's files (volume mounts and others).",
  }),
  lockFile: string({ flag: "lock-file", help: "The path of the file that the kubelet locks." }),
  exitOnLockContention: bool({
    flag: "exit-on-lock-contention",
    help: "Whether the kubelet exits when another process takes the lock file.",
  }),
  runOnce: bool({
    flag: "runonce",
    field: "runOnce",
    deprecated: leaving,
    help: "If true, ends after it ran the pods of local manifests or remote URLs. Excludes --enable-server.",
  }),
  maxOpenFiles: int({
    flag: "max-open-files",
    field: "maxOpenFiles",
    default: 1000000,
    deprecated: inFile,
    zeroIsDefault: "always",
    must: notNegative,
    help: "Number of files that the kubelet process may open.",
  }),
  /** The agent's own cgroup; `""` leaves the agent where it is. */
  kubeletCgroups: string({
    flag: "kubelet-cgroups",
    field: "kubeletCgroups",
    deprecated: inFile,
    help: "Absolute name of the cgroup to make and run the kubelet in.",
  }),
  /** The container runtime's cgroup, for /stats/summary. */
  runtimeCgroups: string({
    flag: "runtime-cgroups",
    help: "Absolute name of the cgroup that the container runtime runs in. Its usage is in /stats/summary.",
  }),
  crashOnPanic: bool({
    flag: "really-crash-for-testing",
    deprecated: inFile,
    help: "If true, panics cause crashes. For testing.",
  }),
  logJsonBuffer: quantity({
    flag: "log-json-info-buffer-size",
    deprecated: inFile,
    help: "[Experimental] In JSON format with split streams, info messages may be kept back up to this size, for speed. 0 turns it off.",
  }),
  logJsonSplitStream: bool({
    flag: "log-json-split-stream",
    deprecated: inFile,
    help: "[Experimental] In JSON format, error messages go to stderr and info messages to stdout.",
  }),
};
