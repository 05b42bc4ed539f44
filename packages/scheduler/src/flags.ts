import { type FlagValues, flags, type Program, section } from "@coxswain/apimachinery/flags/flags";
import { metricsFlags } from "@coxswain/apimachinery/flags/metrics";
import { flagsOf } from "@coxswain/apimachinery/flags/settings";
import {
  delegatedAuthenticationFlags,
  delegatedAuthorizationFlags,
  loggingFlags,
  servingFlags,
} from "@coxswain/apimachinery/flags/shared-flags";
import { int, mapStringBool, string } from "@coxswain/apimachinery/flags/types";
import {
  connectionSettings,
  formerLockSettings,
  insecureServingSettings,
  leaderElectionSettings,
  profilingSettings,
} from "./settings.ts";

/** Every flag of kube-scheduler, by name. */
const flagTable = flags(
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
  section(
    "Deprecated",
    flagsOf({ ...connectionSettings, ...profilingSettings, ...formerLockSettings, ...insecureServingSettings }),
  ),
  section("Leader election", flagsOf(leaderElectionSettings)),
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
