import { type Rule, rule } from "@coxswain/apimachinery/flags/rules";
import { int32 } from "@coxswain/apimachinery/flags/types";

/** Rule of an integer with both limits. */
export const within = (least: number, most: number): Rule<number> => ({
  kind: "within",
  allowed: `${least} to ${most}`,
  problem: (value, { flag }) => {
    if (value < least) return `${flag} must not be less than ${least}, but got ${value}`;
    return value > most ? `${flag} must not be more than ${most}, but got ${value}` : undefined;
  },
});

/** Workers of each controller. */
export const concurrencySettings = {
  deployment: int32({
    flag: "concurrent-deployment-syncs",
    default: 5,
    help: "Deployments that may be synced at once. More answer faster and cost more CPU and network.",
  }),
  replicaSet: int32({ flag: "concurrent-replicaset-syncs", default: 5, help: "ReplicaSets that may be synced at once." }),
  replicationController: int32({
    flag: "concurrent-rc-syncs",
    default: 5,
    help: "ReplicationControllers that may be synced at once.",
  }),
  statefulSet: int32({ flag: "concurrent-statefulset-syncs", default: 5, help: "StatefulSets that may be synced at once." }),
  endpoint: int32({
    flag: "concurrent-endpoint-syncs",
    default: 5,
    help: "Endpoints that may be synced at once. More answer faster and cost more CPU and network.",
  }),
  endpointSlice: int32({
    flag: "concurrent-service-endpoint-syncs",
    default: 5,
    must: within(1, 50),
    help: "Services whose endpoint slices may be synced at once.",
  }),
  endpointSliceMirroring: int32({
    flag: "mirroring-concurrent-service-endpoint-syncs",
    default: 5,
    must: within(1, 50),
    help: "Services whose endpoints may be mirrored at once.",
  }),
  garbageCollector: int32({ flag: "concurrent-gc-syncs", default: 20, help: "Workers of the garbage collector." }),
  namespace: int32({
    flag: "concurrent-namespace-syncs",
    default: 10,
    help: "Namespaces that may be synced at once. More finish deletions faster and cost more CPU and network.",
  }),
  resourceQuota: int32({
    flag: "concurrent-resource-quota-syncs",
    default: 5,
    help: "Resource quotas that may be synced at once.",
  }),
  ttlAfterFinished: int32({
    flag: "concurrent-ttl-after-finished-syncs",
    default: 5,
    help: "Workers of the ttl-after-finished controller.",
  }),
  serviceAccountToken: int32({
    flag: "concurrent-serviceaccount-token-syncs",
    default: 5,
    help: "Service account tokens that may be synced at once.",
  }),
  ephemeralVolume: int32({
    flag: "concurrent-ephemeralvolume-syncs",
    default: 5,
    must: rule(
      "1 or more",
      (workers) => workers >= 1,
      () => "concurrent-ephemeralvolume-syncs must be greater than 0",
    ),
    help: "Ephemeral volumes that may be synced at once.",
  }),
};
