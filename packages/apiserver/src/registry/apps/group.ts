import { selectorText } from "../cells.ts";
import { inGroup } from "../definition.ts";
import type { ResourceDefinition, ScalePaths } from "../generic/resource.ts";
import { controllerRevisionStrategy } from "./controllerrevisions/strategy.ts";
import { controllerRevisionTable } from "./controllerrevisions/table.ts";
import { defaultDaemonSet } from "./daemonsets/defaults.ts";
import { daemonSetStatusStrategy, daemonSetStrategy } from "./daemonsets/strategy.ts";
import { daemonSetTable } from "./daemonsets/table.ts";
import { defaultDeployment } from "./deployments/defaults.ts";
import { deploymentStatusStrategy, deploymentStrategy } from "./deployments/strategy.ts";
import { deploymentTable } from "./deployments/table.ts";
import { defaultReplicaSet } from "./replicasets/defaults.ts";
import { replicaSetStatusStrategy, replicaSetStrategy } from "./replicasets/strategy.ts";
import { replicaSetTable } from "./replicasets/table.ts";
import { defaultStatefulSet } from "./statefulsets/defaults.ts";
import { statefulSetStatusStrategy, statefulSetStrategy } from "./statefulsets/strategy.ts";
import { statefulSetTable } from "./statefulsets/table.ts";

// biome-ignore lint/suspicious/noExplicitAny: read from several kinds.
type Any = any;

const scale: ScalePaths = {
  version: "autoscaling/v1",
  specReplicas: ".spec.replicas",
  statusReplicas: ".status.replicas",
  selector(object: Any) {
    const text = selectorText(object.spec?.selector);
    return text === "<none>" || text === "<error>" ? "" : text;
  },
};

export function appsResources(): ResourceDefinition[] {
  return inGroup("apps", [
    {
      resource: "controllerrevisions",
      kind: "ControllerRevision",
      namespaced: true,
      versions: ["v1"],
      strategy: controllerRevisionStrategy,
      table: controllerRevisionTable,
    },
    {
      resource: "daemonsets",
      kind: "DaemonSet",
      shortNames: ["ds"],
      categories: ["all"],
      namespaced: true,
      versions: [{ version: "v1", defaults: defaultDaemonSet }],
      strategy: daemonSetStrategy,
      statusStrategy: daemonSetStatusStrategy,
      table: daemonSetTable,
    },
    {
      resource: "deployments",
      kind: "Deployment",
      shortNames: ["deploy"],
      categories: ["all"],
      namespaced: true,
      versions: [{ version: "v1", defaults: defaultDeployment }],
      strategy: deploymentStrategy,
      statusStrategy: deploymentStatusStrategy,
      scale: { ...scale, unknownAs: { group: "apps", resource: "deployments/scale" } },
      table: deploymentTable,
    },
    {
      resource: "replicasets",
      kind: "ReplicaSet",
      shortNames: ["rs"],
      categories: ["all"],
      namespaced: true,
      versions: [{ version: "v1", defaults: defaultReplicaSet }],
      strategy: replicaSetStrategy,
      statusStrategy: replicaSetStatusStrategy,
      scale: { ...scale, unknownAs: { group: "apps", resource: "replicasets/scale" } },
      table: replicaSetTable,
    },
    {
      resource: "statefulsets",
      kind: "StatefulSet",
      shortNames: ["sts"],
      categories: ["all"],
      namespaced: true,
      versions: [{ version: "v1", defaults: defaultStatefulSet }],
      strategy: statefulSetStrategy,
      statusStrategy: statefulSetStatusStrategy,
      scale,
      table: statefulSetTable,
    },
  ]);
}
