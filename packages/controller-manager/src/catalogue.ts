import { newCloudNodeLifecycleController, newRouteController, newServiceLoadBalancerController } from "./cloud/without-cloud.ts";
import type { ControllerContext, Runnable } from "./controller-context.ts";
import { newAttachDetachController } from "./controllers/attachdetach/controller.ts";
import { newBootstrapSigner } from "./controllers/bootstrapsigner/controller.ts";
import { newClusterRoleAggregationController } from "./controllers/clusterrole-aggregation/controller.ts";
import { newCronJobController } from "./controllers/cronjob/controller.ts";
import { newCsrApprovingController } from "./controllers/csrapproving/controller.ts";
import { newCsrCleaner } from "./controllers/csrcleaner/controller.ts";
import { newCsrSigningController } from "./controllers/csrsigning/controller.ts";
import { newDaemonSetController } from "./controllers/daemonset/controller.ts";
import { newDeploymentController } from "./controllers/deployment/controller.ts";
import { newDisruptionController } from "./controllers/disruption/controller.ts";
import { newEndpointController } from "./controllers/endpoint/controller.ts";
import { newEndpointSliceController } from "./controllers/endpointslice/controller.ts";
import { newEndpointSliceMirroringController } from "./controllers/endpointslicemirroring/controller.ts";
import { newEphemeralVolumeController } from "./controllers/ephemeral-volume/controller.ts";
import { newGarbageCollector } from "./controllers/garbagecollector/controller.ts";
import { newHorizontalPodAutoscalerController } from "./controllers/horizontalpodautoscaling/controller.ts";
import { newJobController } from "./controllers/job/controller.ts";
import { newNamespaceController } from "./controllers/namespace/controller.ts";
import { newNodeIpamController } from "./controllers/nodeipam/controller.ts";
import { newNodeLifecycleController } from "./controllers/nodelifecycle/controller.ts";
import { newPersistentVolumeBinder } from "./controllers/persistentvolume-binder/controller.ts";
import { newExpandController } from "./controllers/persistentvolume-expander/controller.ts";
import { newPodGarbageCollector } from "./controllers/podgc/controller.ts";
import { newPvProtectionController } from "./controllers/pv-protection/controller.ts";
import { newPvcProtectionController } from "./controllers/pvc-protection/controller.ts";
import { newReplicaSetController } from "./controllers/replicaset/controller.ts";
import { newReplicationControllerController } from "./controllers/replicationcontroller/controller.ts";
import { newResourceQuotaController } from "./controllers/resourcequota/controller.ts";
import { newRootCaCertPublisher } from "./controllers/root-ca-cert-publisher/controller.ts";
import { newServiceAccountController } from "./controllers/serviceaccount/controller.ts";
import { newServiceAccountTokenController } from "./controllers/serviceaccount-token/controller.ts";
import { newStatefulSetController } from "./controllers/statefulset/controller.ts";
import { newStorageVersionGarbageCollector } from "./controllers/storage-version-gc/controller.ts";
import { newTokenCleaner } from "./controllers/tokencleaner/controller.ts";
import { newTtlController } from "./controllers/ttl/controller.ts";
import { newTtlAfterFinishedController } from "./controllers/ttl-after-finished/controller.ts";

export interface CatalogueEntry {
  /** Name in `--controllers`. */
  readonly name: string;
  /** Suffix of the user agent, and the service account of `--use-service-account-credentials`. */
  readonly user: string;
  /** `source.component` of its Events; defaults to `user`. */
  readonly component?: string;
  /** Uses the manager's own credentials, because it creates the tokens that all other controllers need. */
  readonly withManagersRights?: boolean;
  readonly onByDefault: boolean;
  /** Rate limit of its requests, as multiples of `--kube-api-qps` and `--kube-api-burst`; defaults to 1. */
  readonly rate?: { readonly qps: number; readonly burst: number };
  /** Feature gates that must be enabled for the controller to exist. */
  readonly onlyWith?: readonly string[];
  /** @returns undefined when the configuration disables it */
  readonly make: (ctx: ControllerContext) => Runnable | undefined;
}

/** All controllers of Kubernetes 1.23, including those behind alpha feature gates, in start order. */
export const catalogue: readonly CatalogueEntry[] = [
  {
    name: "serviceaccount-token",
    user: "tokens-controller",
    withManagersRights: true,
    onByDefault: true,
    make: newServiceAccountTokenController,
  },
  { name: "endpoint", user: "endpoint-controller", onByDefault: true, make: newEndpointController },
  {
    name: "endpointslice",
    user: "endpointslice-controller",
    component: "endpoint-slice-controller",
    onByDefault: true,
    make: newEndpointSliceController,
  },
  {
    name: "endpointslicemirroring",
    user: "endpointslicemirroring-controller",
    component: "endpoint-slice-mirroring-controller",
    onByDefault: true,
    make: newEndpointSliceMirroringController,
  },
  { name: "replicationcontroller", user: "replication-controller", onByDefault: true, make: newReplicationControllerController },
  { name: "podgc", user: "pod-garbage-collector", onByDefault: true, make: newPodGarbageCollector },
  { name: "resourcequota", user: "resourcequota-controller", onByDefault: true, make: newResourceQuotaController },
  // Deleting the contents of a namespace takes many requests.
  {
    name: "namespace",
    user: "namespace-controller",
    onByDefault: true,
    rate: { qps: 20, burst: 100 },
    make: newNamespaceController,
  },
  { name: "serviceaccount", user: "service-account-controller", onByDefault: true, make: newServiceAccountController },
  // A deletion takes two requests.
  {
    name: "garbagecollector",
    user: "generic-garbage-collector",
    component: "garbage-collector-controller",
    onByDefault: true,
    rate: { qps: 2, burst: 2 },
    make: newGarbageCollector,
  },
  {
    name: "daemonset",
    user: "daemon-set-controller",
    component: "daemonset-controller",
    onByDefault: true,
    make: newDaemonSetController,
  },
  { name: "job", user: "job-controller", onByDefault: true, make: newJobController },
  { name: "deployment", user: "deployment-controller", onByDefault: true, make: newDeploymentController },
  { name: "replicaset", user: "replicaset-controller", onByDefault: true, make: newReplicaSetController },
  {
    name: "horizontalpodautoscaling",
    user: "horizontal-pod-autoscaler",
    onByDefault: true,
    make: newHorizontalPodAutoscalerController,
  },
  {
    name: "disruption",
    user: "disruption-controller",
    component: "controllermanager",
    onByDefault: true,
    make: newDisruptionController,
  },
  { name: "statefulset", user: "statefulset-controller", onByDefault: true, make: newStatefulSetController },
  { name: "cronjob", user: "cronjob-controller", onByDefault: true, make: newCronJobController },
  { name: "csrsigning", user: "certificate-controller", onByDefault: true, make: newCsrSigningController },
  { name: "csrapproving", user: "certificate-controller", onByDefault: true, make: newCsrApprovingController },
  { name: "csrcleaner", user: "certificate-controller", onByDefault: true, make: newCsrCleaner },
  { name: "ttl", user: "ttl-controller", onByDefault: true, make: newTtlController },
  { name: "bootstrapsigner", user: "bootstrap-signer", onByDefault: false, make: newBootstrapSigner },
  { name: "tokencleaner", user: "token-cleaner", onByDefault: false, make: newTokenCleaner },
  { name: "nodeipam", user: "node-controller", component: "cidrAllocator", onByDefault: true, make: newNodeIpamController },
  { name: "nodelifecycle", user: "node-controller", onByDefault: true, make: newNodeLifecycleController },
  { name: "service", user: "service-controller", onByDefault: true, make: newServiceLoadBalancerController },
  { name: "route", user: "route-controller", onByDefault: true, make: newRouteController },
  { name: "cloud-node-lifecycle", user: "node-controller", onByDefault: true, make: newCloudNodeLifecycleController },
  {
    name: "persistentvolume-binder",
    user: "persistent-volume-binder",
    component: "persistentvolume-controller",
    onByDefault: true,
    make: newPersistentVolumeBinder,
  },
  { name: "attachdetach", user: "attachdetach-controller", onByDefault: true, make: newAttachDetachController },
  {
    name: "persistentvolume-expander",
    user: "expand-controller",
    component: "volume_expand",
    onByDefault: true,
    make: newExpandController,
  },
  {
    name: "clusterrole-aggregation",
    user: "clusterrole-aggregation-controller",
    onByDefault: true,
    make: newClusterRoleAggregationController,
  },
  { name: "pvc-protection", user: "pvc-protection-controller", onByDefault: true, make: newPvcProtectionController },
  { name: "pv-protection", user: "pv-protection-controller", onByDefault: true, make: newPvProtectionController },
  {
    name: "ttl-after-finished",
    user: "ttl-after-finished-controller",
    onByDefault: true,
    make: newTtlAfterFinishedController,
  },
  { name: "root-ca-cert-publisher", user: "root-ca-cert-publisher", onByDefault: true, make: newRootCaCertPublisher },
  {
    name: "ephemeral-volume",
    user: "ephemeral-volume-controller",
    component: "ephemeral_volume",
    onByDefault: true,
    make: newEphemeralVolumeController,
  },
  {
    name: "storage-version-gc",
    user: "storage-version-garbage-collector",
    onlyWith: ["APIServerIdentity", "StorageVersionAPI"],
    onByDefault: true,
    make: newStorageVersionGarbageCollector,
  },
];

/**
 * Evaluates `--controllers`: `name` enables, `-name` disables, `*` enables all that are on by default; the first match wins.
 * @param errors receives unknown names
 * @param featureEnabled a controller whose feature gates are disabled is unknown
 * Source: cmd/kube-controller-manager/app, IsControllerEnabled
 */
export function enabledControllers(
  words: readonly string[],
  errors: string[],
  featureEnabled: (gate: string) => boolean,
): Set<string> {
  const entries = catalogue.filter(({ onlyWith = [] }) => onlyWith.every(featureEnabled));
  const known = new Set(entries.map(({ name }) => name));
  for (const word of words) {
    const name = word.startsWith("-") ? word.slice(1) : word;
    if (word !== "*" && !known.has(name)) errors.push(`"${name}" is not in the list of known controllers`);
  }
  return new Set(entries.filter((entry) => isEnabled(entry, words)).map(({ name }) => name));
}

function isEnabled({ name, onByDefault }: CatalogueEntry, words: readonly string[]): boolean {
  for (const word of words) {
    if (word === name) return true;
    if (word === `-${name}`) return false;
  }
  return onByDefault && words.includes("*");
}
