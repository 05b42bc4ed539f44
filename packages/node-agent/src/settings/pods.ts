import { notNegative } from "@coxswain/apimachinery/flags/rules";
import { bool, duration, int, int32, multiMap, string, stringSlice } from "@coxswain/apimachinery/flags/types";
import { inFile, leaving } from "./notices.ts";

/** Pods: number, sources, allowed features, DNS. */
export const podSettings = {
  maxPods: int32({
    flag: "max-pods",
    field: "maxPods",
    default: 110,
    deprecated: inFile,
    zeroIsDefault: "always",
    must: notNegative,
    help: "Number of pods that can run on this kubelet.",
  }),
  podsPerCore: int32({
    flag: "pods-per-core",
    field: "podsPerCore",
    deprecated: inFile,
    must: notNegative,
    help: "Number of pods for each core; never more than --max-pods. 0: no such limit.",
  }),
  podPidsLimit: int({
    flag: "pod-max-pids",
    field: "podPidsLimit",
    default: -1,
    deprecated: inFile,
    help: "The largest number of processes in a pod. -1: the node's allocatable.",
  }),
  podCidr: string({
    flag: "pod-cidr",
    field: "podCIDR",
    deprecated: inFile,
    help: "The range of pod addresses, in standalone mode only. In cluster mode it comes from the API server.",
  }),
  staticPodPath: string({
    flag: "pod-manifest-path",
    field: "staticPodPath",
    deprecated: inFile,
    isPath: true,
    help: "Path to the directory with static pod files to run, or to one of them. Files that begin with a dot are ignored.",
  }),
  staticPodUrl: string({
    flag: "manifest-url",
    field: "staticPodURL",
    deprecated: inFile,
    help: "URL of further pod specifications to run.",
  }),
  /** See `AgentConfig.staticPodUrlHeader`: flag and field are of different types. */
  manifestHeaders: multiMap({
    flag: "manifest-url-header",
    field: "staticPodURLHeader",
    deprecated: inFile,
    shape: { mapOf: ["string"] },
    help: "HTTP headers to send to --manifest-url, as 'a:hello,b:again'. Headers with one name are added up.",
  }),
  fileCheckFrequencyMs: duration({
    flag: "file-check-frequency",
    field: "fileCheckFrequency",
    default: "20s",
    deprecated: inFile,
    zeroIsDefault: "inFile",
    help: "How often configuration files are checked for new data.",
  }),
  httpCheckFrequencyMs: duration({
    flag: "http-check-frequency",
    field: "httpCheckFrequency",
    default: "20s",
    deprecated: inFile,
    zeroIsDefault: "inFile",
    help: "How often HTTP is checked for new data.",
  }),
  syncFrequencyMs: duration({
    flag: "sync-frequency",
    field: "syncFrequency",
    default: "1m0s",
    deprecated: leaving,
    zeroIsDefault: "inFile",
    help: "Longest time between the syncs of running containers with their configuration.",
  }),
  allowedUnsafeSysctls: stringSlice({
    flag: "allowed-unsafe-sysctls",
    field: "allowedUnsafeSysctls",
    deprecated: inFile,
    help: "Unsafe sysctls or patterns (ending in *) that pods may use. Use at your own risk.",
  }),
  seccompDefault: bool({
    flag: "seccomp-default",
    field: "seccompDefault",
    help: "Uses RuntimeDefault as the default seccomp profile. Needs the gate SeccompDefault.",
  }),
  clusterDns: stringSlice({
    flag: "cluster-dns",
    field: "clusterDNS",
    deprecated: inFile,
    help: "Addresses of DNS servers for pods with dnsPolicy=ClusterFirst, comma separated.",
  }),
  clusterDomain: string({
    flag: "cluster-domain",
    field: "clusterDomain",
    deprecated: inFile,
    help: "Domain of the cluster. If set, containers search it besides the host's domains.",
  }),
  resolvConf: string({
    flag: "resolv-conf",
    field: "resolvConf",
    default: "/etc/resolv.conf",
    deprecated: leaving,
    isPath: true,
    help: "Resolver configuration of containers' DNS.",
  }),
};
