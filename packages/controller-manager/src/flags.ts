import { type FlagValues, flags, type Program, section } from "@coxswain/apimachinery/flags/flags";
import { metricsFlags } from "@coxswain/apimachinery/flags/metrics";
import { flagsOf, type Settings } from "@coxswain/apimachinery/flags/settings";
import {
  delegatedAuthenticationFlags,
  delegatedAuthorizationFlags,
  loggingFlags,
  servingFlags,
} from "@coxswain/apimachinery/flags/shared-flags";
import { int, int32 } from "@coxswain/apimachinery/flags/types";
import { serviceAccountFlags, sharedSigningSettings, signerSettings, signingDurationSettings } from "./flags/certificates.ts";
import { concurrencySettings } from "./flags/concurrency.ts";
import { endpointSettings, endpointSliceSettings, mirroringSettings } from "./flags/endpoints.ts";
import {
  cloudSettings,
  debuggingFlags,
  genericFlags,
  genericSettings,
  insecureServingFlags,
  leaderElectionSettings,
  miscFlags,
  nodeCidrSettings,
  nodeMonitorSettings,
  serverSettings,
} from "./flags/generic.ts";
import { formerNodeFlags, nodeIpamSettings, nodeLifecycleSettings } from "./flags/nodes.ts";
import {
  attachDetachSettings,
  hostPathRecyclerSettings,
  nfsRecyclerSettings,
  volumeBinderSettings,
  volumeHostFlags,
} from "./flags/volumes.ts";
import {
  autoscalingRuleSettings,
  autoscalingSettings,
  deploymentFlags,
  formerAutoscalingFlags,
  garbageCollectorSettings,
  namespaceSettings,
  podGcSettings,
  quotaSettings,
} from "./flags/workloads.ts";

const one = concurrencySettings;

/** Flags by the names that the code uses; all others are read by the name on the command line. */
export const settings: readonly Settings[] = [
  ...[concurrencySettings, endpointSettings, endpointSliceSettings, mirroringSettings, genericSettings, serverSettings],
  ...[leaderElectionSettings, nodeMonitorSettings, nodeLifecycleSettings, autoscalingSettings, autoscalingRuleSettings],
  ...[garbageCollectorSettings, namespaceSettings, podGcSettings, quotaSettings, cloudSettings, nodeCidrSettings],
  ...[nodeIpamSettings, attachDetachSettings, volumeBinderSettings, hostPathRecyclerSettings, nfsRecyclerSettings],
  ...[sharedSigningSettings, ...Object.values(signerSettings), signingDurationSettings],
];

/** Every flag of kube-controller-manager, under the name the user types; `wired: false` ones are parsed and warned about. */
export const flagTable = flags(
  section("Debugging", debuggingFlags),
  section("Generic", {
    ...genericFlags,
    ...flagsOf(genericSettings),
    ...flagsOf(leaderElectionSettings),
    ...flagsOf(nodeMonitorSettings),
    ...flagsOf(cloudSettings),
    ...flagsOf(nodeCidrSettings),
  }),
  section("Service controller", {
    "concurrent-service-syncs": int32({ default: 1, wired: false, help: "Services that may be synced at once." }),
  }),
  section("Secure serving", {
    ...servingFlags({ certDir: "", securePort: 10257 }),
    "http2-max-streams-per-connection": int({
      help: "The limit that the server gives to clients for the number of streams in an HTTP/2 connection. 0 means the runtime's default.",
    }),
  }),
  section("Insecure serving", insecureServingFlags),
  section("Authentication", delegatedAuthenticationFlags({ toleratesLookupFailure: false })),
  section("Authorization", delegatedAuthorizationFlags),
  section("Attachdetach controller", flagsOf(attachDetachSettings)),
  section("Csrsigning controller", {
    ...flagsOf(sharedSigningSettings),
    ...flagsOf(Object.fromEntries(Object.values(signerSettings).flatMap(Object.values).entries())),
    ...flagsOf(signingDurationSettings),
  }),
  section("Deployment controller", { ...deploymentFlags, ...flagsOf({ one: one.deployment }) }),
  section("Endpoint controller", flagsOf({ one: one.endpoint, ...endpointSettings })),
  section("Endpointslice controller", flagsOf({ one: one.endpointSlice, ...endpointSliceSettings })),
  section("Endpointslicemirroring controller", flagsOf({ one: one.endpointSliceMirroring, ...mirroringSettings })),
  section("Ephemeralvolume controller", flagsOf({ one: one.ephemeralVolume })),
  section("Garbagecollector controller", flagsOf({ one: one.garbageCollector, ...garbageCollectorSettings })),
  section("Horizontalpodautoscaling controller", {
    ...formerAutoscalingFlags,
    ...flagsOf({ ...autoscalingSettings, ...autoscalingRuleSettings }),
  }),
  section("Namespace controller", flagsOf({ one: one.namespace, ...namespaceSettings })),
  section("Nodeipam controller", flagsOf(nodeIpamSettings)),
  section("Nodelifecycle controller", { ...formerNodeFlags, ...flagsOf(nodeLifecycleSettings) }),
  section("Persistentvolume-binder controller", {
    ...flagsOf(volumeBinderSettings),
    ...flagsOf(hostPathRecyclerSettings),
    ...flagsOf(nfsRecyclerSettings),
    ...volumeHostFlags,
  }),
  section("Podgc controller", flagsOf(podGcSettings)),
  section("Replicaset controller", flagsOf({ one: one.replicaSet })),
  section("Replicationcontroller", flagsOf({ one: one.replicationController })),
  section("Resourcequota controller", flagsOf({ one: one.resourceQuota, ...quotaSettings })),
  section("Serviceaccount controller", { ...serviceAccountFlags, ...flagsOf({ one: one.serviceAccountToken }) }),
  section("Statefulset controller", flagsOf({ one: one.statefulSet })),
  section("Ttl-after-finished controller", flagsOf({ one: one.ttlAfterFinished })),
  section("Metrics", metricsFlags),
  section("Logs", loggingFlags),
  section("Misc", { ...miscFlags, ...flagsOf(serverSettings) }),
);
export type ControllerManagerFlags = FlagValues<typeof flagTable.table>; // durations are in milliseconds

export const kubeControllerManager: Program<typeof flagTable.table> = {
  name: "kube-controller-manager",
  description:
    "The Kubernetes controller manager runs the control loops that come with Kubernetes. A control loop watches the shared state of the cluster through the API server and makes changes that move the current state towards the desired state.",
  flags: flagTable,
};
