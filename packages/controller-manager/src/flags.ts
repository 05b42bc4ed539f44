import { type FlagValues, flags, type Program, section } from "@coxswain/apimachinery/flags/flags";
import { metricsFlags } from "@coxswain/apimachinery/flags/metrics";
import {
  delegatedAuthenticationFlags,
  delegatedAuthorizationFlags,
  loggingFlags,
  servingFlags,
} from "@coxswain/apimachinery/flags/shared-flags";
import { duration, int, int32 } from "@coxswain/apimachinery/flags/types";
import { serviceAccountFlags, signingFlags } from "./flags/certificates.ts";
import { endpointFlags, endpointSliceFlags, mirroringFlags } from "./flags/endpoints.ts";
import { debuggingFlags, genericFlags, insecureServingFlags, miscFlags } from "./flags/generic.ts";
import { nodeIpamFlags, nodeLifecycleFlags } from "./flags/nodes.ts";
import { attachDetachFlags, ephemeralVolumeFlags, volumeBinderFlags } from "./flags/volumes.ts";
import { autoscalingFlags, deploymentFlags, garbageCollectorFlags, namespaceFlags } from "./flags/workloads.ts";

/** Every flag of kube-controller-manager, under the name the user types; `wired: false` ones are parsed and warned about. */
export const flagTable = flags(
  section("Debugging", debuggingFlags),
  section("Generic", genericFlags),
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
  section("Attachdetach controller", attachDetachFlags),
  section("Csrsigning controller", signingFlags),
  section("Deployment controller", deploymentFlags),
  section("Endpoint controller", endpointFlags),
  section("Endpointslice controller", endpointSliceFlags),
  section("Endpointslicemirroring controller", mirroringFlags),
  section("Ephemeralvolume controller", ephemeralVolumeFlags),
  section("Garbagecollector controller", garbageCollectorFlags),
  section("Horizontalpodautoscaling controller", autoscalingFlags),
  section("Namespace controller", namespaceFlags),
  section("Nodeipam controller", nodeIpamFlags),
  section("Nodelifecycle controller", nodeLifecycleFlags),
  section("Persistentvolume-binder controller", volumeBinderFlags),
  section("Podgc controller", {
    "terminated-pod-gc-threshold": int32({
      default: 12500,
      help: "How many terminated pods may exist before the garbage collector deletes some. 0 or less turns it off.",
    }),
  }),
  section("Replicaset controller", {
    "concurrent-replicaset-syncs": int32({ default: 5, help: "ReplicaSets that may be synced at once." }),
  }),
  section("Replicationcontroller", {
    "concurrent-rc-syncs": int32({ default: 5, help: "ReplicationControllers that may be synced at once." }),
  }),
  section("Resourcequota controller", {
    "concurrent-resource-quota-syncs": int32({ default: 5, help: "Resource quotas that may be synced at once." }),
    "resource-quota-sync-period": duration({
      default: "5m0s",
      help: "The period of syncing quota usage in the system.",
    }),
  }),
  section("Serviceaccount controller", serviceAccountFlags),
  section("Statefulset controller", {
    "concurrent-statefulset-syncs": int32({ default: 5, help: "StatefulSets that may be synced at once." }),
  }),
  section("Ttl-after-finished controller", {
    "concurrent-ttl-after-finished-syncs": int32({
      default: 5,
      help: "Workers of the ttl-after-finished controller.",
    }),
  }),
  section("Metrics", metricsFlags),
  section("Logs", loggingFlags),
  section("Misc", miscFlags),
);
export type ControllerManagerFlags = FlagValues<typeof flagTable.table>; // durations are in milliseconds

export const kubeControllerManager: Program<typeof flagTable.table> = {
  name: "kube-controller-manager",
  description:
    "The Kubernetes controller manager runs the control loops that come with Kubernetes. A control loop watches the shared state of the cluster through the API server and makes changes that move the current state towards the desired state.",
  flags: flagTable,
};
