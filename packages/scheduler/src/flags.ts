import { type FlagValues, flags, type Program, section } from "@coxswain/apimachinery/flags/flags";
import { metricsFlags } from "@coxswain/apimachinery/flags/metrics";
import {
  delegatedAuthenticationFlags,
  delegatedAuthorizationFlags,
  leaderElectionFlags,
  loggingFlags,
  servingFlags,
} from "@coxswain/apimachinery/flags/shared-flags";
import { bool, float, int, int32, mapStringBool, string } from "@coxswain/apimachinery/flags/types";

/** Every flag of kube-scheduler, by name. */
export const flagTable = flags(
  section("Misc", {
    config: string({ help: "The path to the configuration file." }),
    master: string({
      deprecated: "will be removed in a future version.",
      help: "The address of the API server; overrides any value in kubeconfig.",
    }),
    "write-config-to": string({
      help: "If set, writes the configuration with all defaults to this file and exits.",
    }),
  }),
  section("Secure serving", {
    ...servingFlags({ certDir: "", securePort: 10259 }),
    "http2-max-streams-per-connection": int({
      help: "The limit that the server gives to clients for the number of streams in an HTTP/2 connection. 0 means the runtime's default.",
    }),
  }),
  section("Authentication", delegatedAuthenticationFlags({ toleratesLookupFailure: true })),
  section("Authorization", delegatedAuthorizationFlags),
  section("Deprecated", {
    address: string({
      default: "0.0.0.0",
      deprecated: "it has no effect.",
      idle: "upstream's does nothing either",
      help: "The IP address of the insecure port.",
    }),
    "contention-profiling": bool({
      default: true,
      deprecated: "will be removed in a future version.",
      help: "Turns lock contention profiling on, if profiling is on.",
    }),
    "kube-api-burst": int32({
      default: 100,
      deprecated: "will be removed in a future version.",
      help: "Burst of requests to the API server.",
    }),
    "kube-api-content-type": string({
      default: "application/vnd.kubernetes.protobuf",
      deprecated: "will be removed in a future version.",
      help: "Content type of requests to the API server.",
    }),
    "kube-api-qps": float({
      default: 50,
      deprecated: "will be removed in a future version.",
      help: "Requests a second to the API server.",
    }),
    kubeconfig: string({
      deprecated: "will be removed in a future version.",
      help: "Path to a kubeconfig file with authorization and location of the API server.",
    }),
    "lock-object-name": string({
      default: "kube-scheduler",
      deprecated: "will be removed in a future version.",
      help: "The name of the lock object.",
    }),
    "lock-object-namespace": string({
      default: "kube-system",
      deprecated: "will be removed in a future version.",
      help: "The namespace of the lock object.",
    }),
    port: int({
      default: 10251,
      deprecated: "it has no effect.",
      idle: "upstream's does nothing either",
      help: "The port of unsecured access.",
    }),
    profiling: bool({
      default: true,
      deprecated: "will be removed in a future version.",
      help: "Enables profiling through host:port/debug/pprof/.",
    }),
  }),
  section("Leader election", leaderElectionFlags("kube-scheduler")),
  section("Feature gate", {
    "feature-gates": mapStringBool({ help: "A set of key=value pairs that turn features on or off." }),
  }),
  section("Metrics", metricsFlags),
  section("Logs", loggingFlags),
);
export type SchedulerFlags = FlagValues<typeof flagTable.table>; // durations arrive as milliseconds

export const kubeScheduler: Program<typeof flagTable.table> = {
  name: "kube-scheduler",
  description:
    "The Kubernetes scheduler assigns pods to nodes. It finds the nodes that are valid for each pod in the queue by constraints and available resources, ranks them, and binds the pod to a suitable one. Several schedulers may be used within a cluster.",
  flags: flagTable,
};
