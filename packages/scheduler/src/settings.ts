import { rule } from "@coxswain/apimachinery/flags/rules";
import { settingOf } from "@coxswain/apimachinery/flags/settings";
import { leaderElectionFlags } from "@coxswain/apimachinery/flags/shared-flags";
import { bool, float, int, int32, string } from "@coxswain/apimachinery/flags/types";

/**
 * One row per field of KubeSchedulerConfiguration, except profiles and extenders, with the corresponding flag if there is one. With a
 * configuration file, only the flags of leader election apply. `must` returns the detail of the field error for an invalid value.
 * Source: k8s.io/kube-scheduler/config/v1beta3, v1beta2; pkg/scheduler/apis/config/v1beta3/defaults.go
 */

const leaving = "will be removed in a future version.";

export const connectionSettings = {
  kubeconfig: string({
    flag: "kubeconfig",
    field: "clientConnection.kubeconfig",
    deprecated: leaving,
    help: "Path to a kubeconfig file with authorization and location of the API server.",
  }),
  acceptContentTypes: string({
    field: "clientConnection.acceptContentTypes",
    help: "Content types of answers of the API server.",
  }),
  contentType: string({
    flag: "kube-api-content-type",
    field: "clientConnection.contentType",
    default: "application/vnd.kubernetes.protobuf",
    zeroIsDefault: "always",
    deprecated: leaving,
    help: "Content type of requests to the API server.",
  }),
  qps: float({
    flag: "kube-api-qps",
    field: "clientConnection.qps",
    shape: "float",
    default: 50,
    zeroIsDefault: "always",
    deprecated: leaving,
    help: "Requests a second to the API server.",
  }),
  burst: int32({
    flag: "kube-api-burst",
    field: "clientConnection.burst",
    default: 100,
    zeroIsDefault: "always",
    must: rule(
      "0 or more",
      (burst) => burst >= 0,
      () => "must be non-negative",
    ),
    deprecated: leaving,
    help: "Burst of requests to the API server.",
  }),
};

export const profilingSettings = {
  enableContentionProfiling: bool({
    flag: "contention-profiling",
    field: "enableContentionProfiling",
    default: true,
    idle: "locks of Go are what it measures",
    deprecated: leaving,
    help: "Turns lock contention profiling on, if profiling is on.",
  }),
  enableProfiling: bool({
    flag: "profiling",
    field: "enableProfiling",
    default: true,
    deprecated: leaving,
    help: "Enables profiling through host:port/debug/pprof/.",
  }),
};

/** Fields that exist only in v1beta2. */
export const insecureAddressSettings = {
  healthzBindAddress: string({ field: "healthzBindAddress", help: "Must be empty or have the port 0." }),
  metricsBindAddress: string({ field: "metricsBindAddress", help: "Must be empty or have the port 0." }),
};

const flags = leaderElectionFlags("kube-scheduler");

export const leaderElectionSettings = {
  enabled: settingOf(flags, "leader-elect", { field: "leaderElection.leaderElect" }),
  leaseDurationMs: settingOf(flags, "leader-elect-lease-duration", { field: "leaderElection.leaseDuration" }),
  renewDeadlineMs: settingOf(flags, "leader-elect-renew-deadline", { field: "leaderElection.renewDeadline" }),
  retryPeriodMs: settingOf(flags, "leader-elect-retry-period", { field: "leaderElection.retryPeriod" }),
  resourceLock: settingOf(flags, "leader-elect-resource-lock", {
    field: "leaderElection.resourceLock",
    zeroIsDefault: "inFile",
  }),
  resourceName: settingOf(flags, "leader-elect-resource-name", {
    field: "leaderElection.resourceName",
    zeroIsDefault: "inFile",
  }),
  resourceNamespace: settingOf(flags, "leader-elect-resource-namespace", {
    field: "leaderElection.resourceNamespace",
    zeroIsDefault: "inFile",
  }),
};

/**
 * The deprecated names of two flags of leader election; used where the current flags are not given, and ignored with a configuration
 * file.
 */
export const formerLockSettings = {
  resourceName: string({
    flag: "lock-object-name",
    default: "kube-scheduler",
    deprecated: leaving,
    help: "The name of the lock object.",
  }),
  resourceNamespace: string({
    flag: "lock-object-namespace",
    default: "kube-system",
    deprecated: leaving,
    help: "The namespace of the lock object.",
  }),
};

export const insecureServingSettings = {
  address: string({
    flag: "address",
    default: "0.0.0.0",
    deprecated: "it has no effect.",
    idle: "upstream's does nothing either",
    help: "The IP address of the insecure port.",
  }),
  port: int({
    flag: "port",
    default: 10251,
    deprecated: "it has no effect.",
    idle: "upstream's does nothing either",
    help: "The port of unsecured access.",
  }),
};

export const schedulingSettings = {
  parallelism: int32({
    field: "parallelism",
    default: 16,
    must: rule(
      "1 or more",
      (number) => number > 0,
      () => "should be an integer value greater than zero",
    ),
    help: "Validated but without effect: filters run in a single thread.",
  }),
  percentageOfNodesToScore: int32({
    field: "percentageOfNodesToScore",
    must: rule(
      "0 to 100",
      (share) => share >= 0 && share <= 100,
      () => "not in valid range [0-100]",
    ),
    help: "The share of nodes found feasible after which the search ends. 0: by the size of the cluster.",
  }),
  podInitialBackoffSeconds: int32({
    field: "podInitialBackoffSeconds",
    default: 1,
    must: rule(
      "1 or more",
      (seconds) => seconds > 0,
      () => "must be greater than 0",
    ),
    help: "How long a pod waits after its first failed attempt.",
  }),
  podMaxBackoffSeconds: int32({
    field: "podMaxBackoffSeconds",
    default: 10,
    help: "How long a pod waits at most between attempts. At least podInitialBackoffSeconds.",
  }),
};
