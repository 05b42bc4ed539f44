import { clusterRoleBindings, clusterRoles, roleBindings, roles } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { ensureAuthenticationInfo } from "../bootstrap/authentication-info.ts";
import { untilCaughtUp } from "../bootstrap/caught-up.ts";
import { ensureFlowConfiguration, keepFlowConfiguration } from "../bootstrap/flow-configuration.ts";
import { collectIdentityLeases, type IdentityLeaseOptions, renewIdentityLease } from "../bootstrap/identity-lease.ts";
import { ensureKubernetesService, type KubernetesServiceOptions } from "../bootstrap/kubernetes-service.ts";
import { ensureNamespaces } from "../bootstrap/namespaces.ts";
import { ensurePriorityClasses } from "../bootstrap/priority-classes.ts";
import { ensureRbacPolicy } from "../bootstrap/rbac-policy.ts";
import { aggregatorHooks } from "./aggregator-hooks.ts";
import { customResourceHooks } from "./custom-resource-hooks.ts";
import type { Foundation } from "./foundation.ts";
import type { Modules } from "./modules.ts";
import type { PostStartHook } from "./post-start-hooks.ts";
import { storageVersionHooks } from "./storage-version-barrier.ts";

/** The post-start hooks, in the order in which health lists them; without those of groups that --runtime-config disables. */
export function startHooks(
  { config, featureEnabled, clock, log, certificates }: Foundation,
  modules: Modules,
  service: KubernetesServiceOptions,
  identity: IdentityLeaseOptions | undefined,
): PostStartHook[] {
  const { client, informers, customResources } = modules;
  const info = certificates.authenticationInfo();
  const serves = (group: string, version: string, resource: string): boolean => config.served(group, version, resource, true);
  const hooks: (PostStartHook | false)[] = [
    { name: "start-kube-apiserver-admission-initializer", run: (signal) => informers.waitForSync(signal) },
    { name: "generic-apiserver-start-informers", run: (signal) => informers.waitForSync(signal) },
    ...loadLimitHooks(modules),
    ...(customResources === undefined ? [] : customResourceHooks(customResources, log)),
    {
      name: "bootstrap-controller",
      async run(signal) {
        await ensureNamespaces(client, signal);
        await modules.repair.runOnce();
        await ensureKubernetesService(service, signal);
      },
    },
    config.authorizationModes.includes("RBAC") &&
      serves("rbac.authorization.k8s.io", "v1", "clusterroles") && {
        name: "rbac/bootstrap-roles",
        async run(signal) {
          await ensureNamespaces(client, signal);
          await ensureRbacPolicy(client, featureEnabled, signal);
          await untilCaughtUp(client, informers, [clusterRoles, clusterRoleBindings, roles, roleBindings], clock, signal);
        },
      },
    serves("scheduling.k8s.io", "v1", "priorityclasses") && {
      name: "scheduling/bootstrap-system-priority-classes",
      run: (signal) => ensurePriorityClasses(client, signal),
    },
    serves("flowcontrol.apiserver.k8s.io", "v1beta2", "flowschemas") && {
      name: "priority-and-fairness-config-producer",
      async run(signal) {
        await ensureFlowConfiguration(client, signal);
        keepFlowConfiguration(client, clock, log, signal);
      },
    },
    {
      name: "start-cluster-authentication-info-controller",
      async run(signal) {
        await ensureNamespaces(client, signal);
        await ensureAuthenticationInfo(client, info, signal);
      },
    },
    identity !== undefined && {
      name: "start-kube-apiserver-identity-lease-controller",
      async run(signal) {
        await ensureNamespaces(client, signal);
        await renewIdentityLease(identity, signal);
      },
    },
    identity !== undefined && {
      name: "start-kube-apiserver-identity-lease-garbage-collector",
      run: (signal) => collectIdentityLeases(identity, signal),
    },
    ...storageVersionHooks(modules.storageVersions, identity),
    ...aggregatorHooks({
      aggregator: modules.aggregator,
      followsCertificate: config.flags["proxy-client-cert-file"] !== "" && config.flags["proxy-client-key-file"] !== "",
      customResourcesKnown: async (signal) => customResources?.waitForSync(signal),
      log,
    }),
  ];
  return hooks.filter((hook) => hook !== false);
}

/** Source: k8s.io/apiserver pkg/server/config.go */
function loadLimitHooks({ loadLimit: { follow } }: Modules): PostStartHook[] {
  const nothing = async (): Promise<void> => {};
  if (follow === undefined) return [{ name: "max-in-flight-filter", run: nothing }];
  return [
    { name: "priority-and-fairness-config-consumer", run: async (signal) => follow(signal) },
    { name: "priority-and-fairness-filter", run: nothing },
  ];
}
