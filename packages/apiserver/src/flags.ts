import { type FlagValues, flags, type Program, section } from "@coxswain/apimachinery/flags/flags";
import { metricsFlags } from "@coxswain/apimachinery/flags/metrics";
import { rule } from "@coxswain/apimachinery/flags/rules";
import { loggingFlags, servingFlags } from "@coxswain/apimachinery/flags/shared-flags";
import { auditFlags } from "./flags/audit.ts";
import { authenticationFlags, authorizationFlags } from "./flags/authentication.ts";
import { cloudFlags, miscFlags } from "./flags/cluster.ts";
import { etcdFlags } from "./flags/etcd.ts";
import {
  admissionFlags,
  apiEnablementFlags,
  egressFlags,
  featureFlags,
  genericFlags,
  insecureServingFlags,
  traceFlags,
} from "./flags/serving.ts";

const servedPort = rule<number>(
  "1 to 65535",
  (port) => port >= 1 && port <= 65_535,
  (port, name) => `${name} ${port} must be between 1 and 65535, inclusive. It cannot be turned off with 0`,
);

/** Every flag of kube-apiserver, under the name the user types; `wired: false` ones are parsed and warned about. */
export const flagTable = flags(
  section("Generic", genericFlags),
  section("Etcd", etcdFlags),
  section("Secure serving", servingFlags({ certDir: "/var/run/kubernetes", securePort: 6443, portRule: servedPort })),
  section("Insecure serving", insecureServingFlags),
  section("Auditing", auditFlags),
  section("Features", featureFlags),
  section("Authentication", authenticationFlags),
  section("Authorization", authorizationFlags),
  section("Cloud provider", cloudFlags),
  section("API enablement", apiEnablementFlags),
  section("Egress selector", egressFlags),
  section("Admission", admissionFlags),
  section("Metrics", metricsFlags),
  section("Logs", loggingFlags),
  section("Traces", traceFlags),
  section("Misc", miscFlags),
);
export type ApiserverFlags = FlagValues<typeof flagTable.table>; // durations arrive as milliseconds

export const kubeApiserver: Program<typeof flagTable.table> = {
  name: "kube-apiserver",
  description:
    "The Kubernetes API server validates and configures data for the API objects, which include pods, services, replication controllers, and others. It serves REST operations and is the frontend of the cluster's shared state, through which all other components interact.",
  flags: flagTable,
};
