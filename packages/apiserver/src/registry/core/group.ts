import { labelsText } from "../cells.ts";
import type { CatalogueConfig } from "../config.ts";
import { inGroup, type ResourceRow, verbsWithoutDeleteCollection } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import { createBinding } from "./bindings/create.ts";
import { componentStatusSubresource } from "./componentstatuses/probe.ts";
import { componentStatusTable } from "./componentstatuses/table.ts";
import { configMapStrategy } from "./configmaps/strategy.ts";
import { configMapTable } from "./configmaps/table.ts";
import { defaultEndpoints } from "./endpoints/defaults.ts";
import { endpointsStrategy } from "./endpoints/strategy.ts";
import { endpointsTable } from "./endpoints/table.ts";
import { coreEventFields } from "./events/fields.ts";
import { eventStrategy } from "./events/strategy.ts";
import { eventTable } from "./events/table.ts";
import { defaultLimitRange, defaultLimitRangeInSteps } from "./limitranges/defaults.ts";
import { limitRangeStrategy } from "./limitranges/strategy.ts";
import { defaultNamespace } from "./namespaces/defaults.ts";
import { namespaceFinalizeStrategy } from "./namespaces/finalize.ts";
import { namespaceStatusStrategy, namespaceStrategy } from "./namespaces/strategy.ts";
import { namespaceTable } from "./namespaces/table.ts";
import { defaultNode } from "./nodes/defaults.ts";
import { nodeProxy } from "./nodes/proxy.ts";
import { nodeStatusStrategy, nodeStrategy } from "./nodes/strategy.ts";
import { nodeTable } from "./nodes/table.ts";
import { defaultPersistentVolumeClaim } from "./persistentvolumeclaims/defaults.ts";
import { persistentVolumeClaimStatusStrategy, persistentVolumeClaimStrategy } from "./persistentvolumeclaims/strategy.ts";
import { persistentVolumeClaimTable } from "./persistentvolumeclaims/table.ts";
import { defaultPersistentVolume } from "./persistentvolumes/defaults.ts";
import { persistentVolumeStatusStrategy, persistentVolumeStrategy } from "./persistentvolumes/strategy.ts";
import { persistentVolumeTable } from "./persistentvolumes/table.ts";
import { defaultPod } from "./pods/defaults.ts";
import { podFields } from "./pods/fields.ts";
import { newPodStatusStrategy, newPodStrategy } from "./pods/strategy.ts";
import { podSubresources } from "./pods/subresources.ts";
import { podTable } from "./pods/table.ts";
import { defaultPodTemplateObject } from "./podtemplates/defaults.ts";
import { podTemplateStrategy } from "./podtemplates/strategy.ts";
import { podTemplateTable } from "./podtemplates/table.ts";
import { defaultReplicationController } from "./replicationcontrollers/defaults.ts";
import { replicationControllerStatusStrategy, replicationControllerStrategy } from "./replicationcontrollers/strategy.ts";
import { replicationControllerTable } from "./replicationcontrollers/table.ts";
import { defaultResourceQuota, defaultResourceQuotaInSteps } from "./resourcequotas/defaults.ts";
import { resourceQuotaStatusStrategy, resourceQuotaStrategy } from "./resourcequotas/strategy.ts";
import { resourceQuotaTable } from "./resourcequotas/table.ts";
import { defaultingSecret, defaultSecret } from "./secrets/defaults.ts";
import { secretStrategy } from "./secrets/strategy.ts";
import { secretTable } from "./secrets/table.ts";
import { serviceAccountStrategy } from "./serviceaccounts/strategy.ts";
import { serviceAccountTable } from "./serviceaccounts/table.ts";
import { createToken } from "./serviceaccounts/token.ts";
import { defaultService } from "./services/defaults.ts";
import { serviceProxy } from "./services/proxy.ts";
import { newServiceStrategy, serviceStatusStrategy } from "./services/strategy.ts";
import { serviceTable } from "./services/table.ts";

// biome-ignore lint/suspicious/noExplicitAny: selectable fields are read from many kinds.
type Any = any;

const proxyVerbs = ["create", "delete", "get", "patch", "update"];

/** The resources of the core group, in the order of discovery. */
export function coreResources(config: CatalogueConfig): ResourceDefinition[] {
  return inGroup("", [
    bindings,
    componentstatuses(config),
    configmaps,
    endpoints,
    events,
    limitranges,
    namespaces,
    nodes(config),
    persistentvolumeclaims,
    persistentvolumes,
    pods(config),
    podtemplates,
    replicationcontrollers,
    resourcequotas,
    secrets,
    serviceaccounts,
    services(config),
  ]);
}

const bindings: ResourceRow = {
  resource: "bindings",
  kind: "Binding",
  namespaced: true,
  verbs: ["create"],
  versions: ["v1"],
  subresources: { "": { kind: "Binding", verbs: ["create"], handler: { type: "object", create: createBinding } } },
};

const componentstatuses = (config: CatalogueConfig): ResourceRow => ({
  resource: "componentstatuses",
  kind: "ComponentStatus",
  shortNames: ["cs"],
  namespaced: false,
  verbs: ["get", "list"],
  versions: [{ version: "v1", deprecation: "v1 ComponentStatus is deprecated in v1.19+" }],
  subresources: { "": componentStatusSubresource(config.etcd) },
  table: componentStatusTable,
});

const configmaps: ResourceRow = {
  resource: "configmaps",
  kind: "ConfigMap",
  shortNames: ["cm"],
  namespaced: true,
  versions: ["v1"],
  strategy: configMapStrategy,
  table: configMapTable,
};

const endpoints: ResourceRow = {
  resource: "endpoints",
  kind: "Endpoints",
  listKind: "EndpointsList",
  shortNames: ["ep"],
  namespaced: true,
  versions: [{ version: "v1", defaults: defaultEndpoints }],
  storageFolder: "services/endpoints",
  strategy: endpointsStrategy,
  table: endpointsTable,
};

const events: ResourceRow = {
  resource: "events",
  kind: "Event",
  shortNames: ["ev"],
  namespaced: true,
  versions: ["v1"],
  strategy: eventStrategy,
  selectableFields: coreEventFields,
  ttlSeconds: (flags) => flags.eventTtlSeconds,
  table: eventTable,
};

const limitranges: ResourceRow = {
  resource: "limitranges",
  kind: "LimitRange",
  shortNames: ["limits"],
  namespaced: true,
  versions: [{ version: "v1", defaults: defaultLimitRange, defaultsInSteps: defaultLimitRangeInSteps }],
  strategy: limitRangeStrategy,
};

const namespaces: ResourceRow = {
  resource: "namespaces",
  kind: "Namespace",
  shortNames: ["ns"],
  namespaced: false,
  verbs: verbsWithoutDeleteCollection,
  versions: [{ version: "v1", defaults: defaultNamespace }],
  strategy: namespaceStrategy,
  statusStrategy: namespaceStatusStrategy,
  selectableFields: (object: Any) => ({ "status.phase": object.status?.phase ?? "" }),
  subresources: {
    finalize: { kind: "Namespace", verbs: ["update"], handler: { type: "strategy", strategy: namespaceFinalizeStrategy } },
  },
  table: namespaceTable,
};

const nodes = (config: CatalogueConfig): ResourceRow => ({
  resource: "nodes",
  kind: "Node",
  shortNames: ["no"],
  namespaced: false,
  versions: [{ version: "v1", defaults: defaultNode }],
  storageFolder: "minions",
  strategy: nodeStrategy,
  statusStrategy: nodeStatusStrategy,
  selectableFields: (object: Any) => ({ "spec.unschedulable": String(object.spec?.unschedulable ?? false) }),
  subresources: {
    proxy: { kind: "NodeProxyOptions", verbs: proxyVerbs, handler: { type: "connect", connect: nodeProxy(config) } },
  },
  table: nodeTable,
});

const persistentvolumeclaims: ResourceRow = {
  resource: "persistentvolumeclaims",
  returnDeletedObject: true,
  kind: "PersistentVolumeClaim",
  shortNames: ["pvc"],
  namespaced: true,
  versions: [{ version: "v1", defaults: defaultPersistentVolumeClaim }],
  strategy: persistentVolumeClaimStrategy,
  statusStrategy: persistentVolumeClaimStatusStrategy,
  table: persistentVolumeClaimTable,
};

const persistentvolumes: ResourceRow = {
  resource: "persistentvolumes",
  returnDeletedObject: true,
  kind: "PersistentVolume",
  shortNames: ["pv"],
  namespaced: false,
  versions: [{ version: "v1", defaults: defaultPersistentVolume }],
  strategy: persistentVolumeStrategy,
  statusStrategy: persistentVolumeStatusStrategy,
  table: persistentVolumeTable,
};

const pods = (config: CatalogueConfig): ResourceRow => ({
  resource: "pods",
  returnDeletedObject: true,
  kind: "Pod",
  shortNames: ["po"],
  categories: ["all"],
  namespaced: true,
  versions: [{ version: "v1", defaults: defaultPod }],
  strategy: newPodStrategy(config),
  statusStrategy: newPodStatusStrategy(config),
  selectableFields: podFields,
  cacheIndexes: ["spec.nodeName"],
  subresources: podSubresources(config),
  table: podTable,
});

const podtemplates: ResourceRow = {
  resource: "podtemplates",
  returnDeletedObject: true,
  kind: "PodTemplate",
  namespaced: true,
  versions: [{ version: "v1", defaults: defaultPodTemplateObject }],
  strategy: podTemplateStrategy,
  table: podTemplateTable,
};

const replicationcontrollers: ResourceRow = {
  resource: "replicationcontrollers",
  kind: "ReplicationController",
  shortNames: ["rc"],
  categories: ["all"],
  namespaced: true,
  versions: [{ version: "v1", defaults: defaultReplicationController }],
  storageFolder: "controllers",
  strategy: replicationControllerStrategy,
  statusStrategy: replicationControllerStatusStrategy,
  scale: {
    version: "autoscaling/v1",
    specReplicas: ".spec.replicas",
    statusReplicas: ".status.replicas",
    selector: (object: Any) => mapSelector(object.spec?.selector),
    unknownAs: { group: "autoscaling", resource: "replicationcontrollers/scale" },
  },
  selectableFields: (object: Any) => ({ "status.replicas": String(object.status?.replicas ?? 0) }),
  table: replicationControllerTable,
};

const resourcequotas: ResourceRow = {
  resource: "resourcequotas",
  returnDeletedObject: true,
  kind: "ResourceQuota",
  shortNames: ["quota"],
  namespaced: true,
  versions: [{ version: "v1", defaults: defaultResourceQuota, defaultsInSteps: defaultResourceQuotaInSteps }],
  strategy: resourceQuotaStrategy,
  statusStrategy: resourceQuotaStatusStrategy,
  table: resourceQuotaTable,
};

const secrets: ResourceRow = {
  resource: "secrets",
  kind: "Secret",
  namespaced: true,
  versions: [{ version: "v1", defaults: defaultSecret, defaultsInSteps: defaultingSecret }],
  strategy: secretStrategy,
  selectableFields: (object: Any) => ({ type: object.type ?? "" }),
  table: secretTable,
};

const serviceaccounts: ResourceRow = {
  resource: "serviceaccounts",
  returnDeletedObject: true,
  kind: "ServiceAccount",
  shortNames: ["sa"],
  namespaced: true,
  versions: ["v1"],
  strategy: serviceAccountStrategy,
  subresources: {
    token: {
      kind: "TokenRequest",
      kindGroupVersion: { group: "authentication.k8s.io", version: "v1" },
      verbs: ["create"],
      handler: { type: "object", create: createToken },
    },
  },
  table: serviceAccountTable,
};

const services = (config: CatalogueConfig): ResourceRow => ({
  resource: "services",
  returnDeletedObject: true,
  kind: "Service",
  shortNames: ["svc"],
  categories: ["all"],
  namespaced: true,
  versions: [{ version: "v1", defaults: defaultService }],
  storageFolder: "services/specs",
  strategy: newServiceStrategy(config),
  statusStrategy: serviceStatusStrategy,
  subresources: {
    proxy: { kind: "ServiceProxyOptions", verbs: proxyVerbs, handler: { type: "connect", connect: serviceProxy } },
  },
  table: serviceTable,
});

function mapSelector(selector: Record<string, string> | undefined): string {
  return selector && Object.keys(selector).length > 0 ? labelsText(selector) : "";
}

/** Allocated cluster IPs and node ports: `/registry/ranges/serviceips`, `/registry/ranges/servicenodeports`. Not served. Cast: the table has one row. */
export const rangeAllocations: ResourceDefinition = (
  inGroup("", [
    {
      resource: "rangeallocations",
      kind: "RangeAllocation",
      namespaced: false,
      verbs: [],
      versions: ["v1"],
      storageFolder: "ranges",
      strategy: { namespaceScoped: false },
    },
  ]) as [ResourceDefinition]
)[0];
