import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { PluginContext } from "./plugin-context.ts";
/**
 * All admission plugins of 1.23 in execution order; the order of names in flags is ignored.
 * Source: pkg/kubeapiserver/options/plugins.go
 */

import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { AdmissionPlugin } from "./plugin.ts";
import { alwaysAdmit } from "./plugins/always-admit.ts";
import { alwaysDeny } from "./plugins/always-deny.ts";
import { alwaysPullImages } from "./plugins/always-pull-images.ts";
import { certificateApproval, certificateSigning, certificateSubjectRestriction } from "./plugins/certificates.ts";
import { defaultIngressClass } from "./plugins/default-ingress-class.ts";
import { defaultStorageClass } from "./plugins/default-storage-class.ts";
import { defaultTolerationSeconds } from "./plugins/default-toleration-seconds.ts";
import { denyServiceExternalIps } from "./plugins/deny-service-external-ips.ts";
import { eventRateLimit } from "./plugins/event-rate-limit.ts";
import { extendedResourceToleration } from "./plugins/extended-resource-toleration.ts";
import { imagePolicyWebhook } from "./plugins/image-policy-webhook.ts";
import { limitPodHardAntiAffinityTopology } from "./plugins/limit-pod-hard-anti-affinity-topology.ts";
import { limitRanger } from "./plugins/limit-ranger.ts";
import { mutatingAdmissionWebhook } from "./plugins/mutating-admission-webhook.ts";
import { namespaceAutoProvision } from "./plugins/namespace-auto-provision.ts";
import { namespaceExists } from "./plugins/namespace-exists.ts";
import { namespaceLifecycle } from "./plugins/namespace-lifecycle.ts";
import { nodeRestriction } from "./plugins/node-restriction.ts";
import { ownerReferencesPermissionEnforcement } from "./plugins/owner-references-permission-enforcement.ts";
import { persistentVolumeClaimResize } from "./plugins/persistent-volume-claim-resize.ts";
import { persistentVolumeLabel } from "./plugins/persistent-volume-label.ts";
import { podNodeSelector } from "./plugins/pod-node-selector.ts";
import { podSecurity } from "./plugins/pod-security.ts";
import { podSecurityPolicy } from "./plugins/pod-security-policy.ts";
import { podTolerationRestriction } from "./plugins/pod-toleration-restriction.ts";
import { priority } from "./plugins/priority.ts";
import { resourceQuota } from "./plugins/resource-quota.ts";
import { runtimeClass } from "./plugins/runtime-class.ts";
import { securityContextDeny } from "./plugins/security-context-deny.ts";
import { serviceAccount } from "./plugins/service-account.ts";
import { storageObjectInUseProtection } from "./plugins/storage-object-in-use-protection.ts";
import { taintNodesByCondition } from "./plugins/taint-nodes-by-condition.ts";
import { validatingAdmissionWebhook } from "./plugins/validating-admission-webhook.ts";

interface PluginRow {
  readonly name: string;
  readonly onByDefault?: boolean;
  readonly make: (ctx: PluginContext) => AdmissionPlugin;
}

export const pluginCatalogue: readonly PluginRow[] = [
  { name: "AlwaysAdmit", make: alwaysAdmit },
  { name: "NamespaceAutoProvision", make: namespaceAutoProvision },
  { name: "NamespaceLifecycle", onByDefault: true, make: namespaceLifecycle },
  { name: "NamespaceExists", make: namespaceExists },
  { name: "SecurityContextDeny", make: securityContextDeny },
  { name: "LimitPodHardAntiAffinityTopology", make: limitPodHardAntiAffinityTopology },
  { name: "LimitRanger", onByDefault: true, make: limitRanger },
  { name: "ServiceAccount", onByDefault: true, make: serviceAccount },
  { name: "NodeRestriction", make: nodeRestriction },
  { name: "TaintNodesByCondition", onByDefault: true, make: taintNodesByCondition },
  { name: "AlwaysPullImages", make: alwaysPullImages },
  { name: "ImagePolicyWebhook", make: imagePolicyWebhook },
  { name: "PodSecurity", onByDefault: true, make: podSecurity },
  { name: "PodSecurityPolicy", make: podSecurityPolicy },
  { name: "PodNodeSelector", make: podNodeSelector },
  { name: "Priority", onByDefault: true, make: priority },
  { name: "DefaultTolerationSeconds", onByDefault: true, make: defaultTolerationSeconds },
  { name: "PodTolerationRestriction", make: podTolerationRestriction },
  { name: "EventRateLimit", make: eventRateLimit },
  { name: "ExtendedResourceToleration", make: extendedResourceToleration },
  { name: "PersistentVolumeLabel", make: persistentVolumeLabel },
  { name: "DefaultStorageClass", onByDefault: true, make: defaultStorageClass },
  { name: "StorageObjectInUseProtection", onByDefault: true, make: storageObjectInUseProtection },
  { name: "OwnerReferencesPermissionEnforcement", make: ownerReferencesPermissionEnforcement },
  { name: "PersistentVolumeClaimResize", onByDefault: true, make: persistentVolumeClaimResize },
  { name: "RuntimeClass", onByDefault: true, make: runtimeClass },
  { name: "CertificateApproval", onByDefault: true, make: certificateApproval },
  { name: "CertificateSigning", onByDefault: true, make: certificateSigning },
  { name: "CertificateSubjectRestriction", onByDefault: true, make: certificateSubjectRestriction },
  { name: "DefaultIngressClass", onByDefault: true, make: defaultIngressClass },
  { name: "DenyServiceExternalIPs", make: denyServiceExternalIps },
  { name: "MutatingAdmissionWebhook", onByDefault: true, make: mutatingAdmissionWebhook },
  { name: "ValidatingAdmissionWebhook", onByDefault: true, make: validatingAdmissionWebhook },
  { name: "ResourceQuota", onByDefault: true, make: resourceQuota },
  { name: "AlwaysDeny", make: alwaysDeny },
];

export interface PluginSelection {
  readonly enable: readonly string[];
  readonly disable: readonly string[];
  /** --admission-control (deprecated): runs exactly these plugins; empty when the flag is not set. */
  readonly only: readonly string[];
}

/**
 * @returns the enabled plugins in execution order.
 * @throws Error listing all problems: unknown names, names both enabled and disabled, both kinds of flags used together.
 */
export function selectPlugins({ enable, disable, only }: PluginSelection): readonly PluginRow[] {
  const known = new Set(pluginCatalogue.map(({ name }) => name));
  const unknown = (flag: string, names: readonly string[]): string[] =>
    names.filter((name) => !known.has(name)).map((name) => `${flag} plugin ${goQuote(name)} is unknown`);
  const errors: string[] = [];
  if (only.length > 0 && enable.length + disable.length > 0) {
    errors.push("admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive");
  }
  errors.push(
    ...unknown("admission-control", only),
    ...unknown("enable-admission-plugins", enable),
    ...unknown("disable-admission-plugins", disable),
  );
  const both = [...new Set(enable.filter((name) => disable.includes(name)))].sort();
  if (both.length > 0) {
    errors.push(`[${both.join(" ")}] in enable-admission-plugins and disable-admission-plugins overlapped`);
  }
  if (errors.length > 0) throw new Error(errors.length === 1 ? errors[0] : `[${errors.join(", ")}]`);
  const isChosen = ({ name, onByDefault }: PluginRow): boolean =>
    only.length > 0 ? only.includes(name) : (onByDefault === true || enable.includes(name)) && !disable.includes(name);
  return pluginCatalogue.filter(isChosen);
}

/** @throws ConfigError naming the plugin whose configuration is invalid. Source: k8s.io/apiserver pkg/admission/plugins.go */
export function makePlugins(selection: PluginSelection, ctx: PluginContext): AdmissionPlugin[] {
  return selectPlugins(selection).map(({ name, make }) => {
    try {
      return make(ctx);
    } catch (err) {
      const text = `failed to initialize admission: couldn't init admission plugin ${goQuote(name)}: ${messageOf(err)}`;
      throw new ConfigError(text, { cause: err });
    }
  });
}
