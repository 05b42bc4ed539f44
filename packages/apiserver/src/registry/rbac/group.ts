import type { CatalogueConfig } from "../config.ts";
import { inGroup } from "../definition.ts";
import type { ResourceDefinition, ResourceVersionDefinition } from "../generic/resource.ts";
import { bindingFromV1alpha1, bindingToV1alpha1 } from "./rolebindings/conversion.ts";
import { defaultBinding } from "./rolebindings/defaults.ts";
import { newBindingStrategy } from "./rolebindings/strategy.ts";
import { bindingTable } from "./rolebindings/table.ts";
import { newRoleStrategy } from "./roles/strategy.ts";

const roleVersions: readonly (string | ResourceVersionDefinition)[] = ["v1", { version: "v1alpha1", servedByDefault: false }];

const bindingVersions: readonly ResourceVersionDefinition[] = [
  { version: "v1", defaults: defaultBinding },
  {
    version: "v1alpha1",
    servedByDefault: false,
    defaults: defaultBinding,
    toHub: bindingFromV1alpha1,
    fromHub: bindingToV1alpha1,
  },
];

export function rbacResources(config: CatalogueConfig): ResourceDefinition[] {
  return inGroup("rbac.authorization.k8s.io", [
    {
      resource: "clusterrolebindings",
      kind: "ClusterRoleBinding",
      namespaced: false,
      versions: bindingVersions,
      strategy: newBindingStrategy(config, false),
      table: bindingTable,
    },
    {
      resource: "clusterroles",
      kind: "ClusterRole",
      namespaced: false,
      versions: roleVersions,
      strategy: newRoleStrategy(config, false),
    },
    {
      resource: "rolebindings",
      kind: "RoleBinding",
      namespaced: true,
      versions: bindingVersions,
      strategy: newBindingStrategy(config, true),
      table: bindingTable,
    },
    {
      resource: "roles",
      kind: "Role",
      namespaced: true,
      versions: roleVersions,
      strategy: newRoleStrategy(config, true),
    },
  ]);
}
