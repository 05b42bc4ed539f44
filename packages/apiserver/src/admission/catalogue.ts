/**
 * THE list of admission plugins of 1.23, in the order they run, whatever the order of the flags.
 * Source: pkg/kubeapiserver/options/plugins.go
 */

import type { Client } from "@coxswain/apimachinery/client/client";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { goQuote } from "@coxswain/apimachinery/meta/go-quote";
import type { GroupVersionKind } from "@coxswain/apimachinery/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { Authorizer } from "../authorization/authorizer.ts";
import type { PluginConfigurations } from "./configuration.ts";
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
import type { WebhookWay } from "./webhooks/caller.ts";
import type { ResolveService } from "./webhooks/endpoint.ts";
import type { ResourceVersion } from "./webhooks/matcher.ts";

/** What plugins may reach. They read the cluster through informers, and write through the loopback client. */
export interface PluginContext {
  readonly informers: InformerFactory;
  readonly client: Client;
  readonly authorize: Authorizer;
  readonly clock: Clock;
  readonly log: Logger;
  readonly featureEnabled: (gate: string) => boolean;
  readonly defaultNotReadyTolerationSeconds: number;
  readonly defaultUnreachableTolerationSeconds: number;
  readonly versions: ObjectVersions;
  readonly webhookMetrics: WebhookMetrics;
  /** For plugins that count something of their own. */
  readonly metrics: MetricsRegistry;
  /** For webhooks that are services. */
  readonly resolveService: ResolveService;
  readonly webhookWay?: WebhookWay;
  /** Shown to webhooks that nothing else is configured for; PEM. */
  readonly proxyCertificate: { readonly current: { readonly cert: string; readonly key: string } | undefined };
  /** What --admission-control-config-file says about the plugin; undefined for nothing. */
  readonly configurationOf: PluginConfigurations;
}

/** The versions in which resources are served, for webhooks that were registered for another one than the request's. */
export interface ObjectVersions {
  /** All served versions of the resource, whatever version is given. */
  of(resource: { readonly group: string; readonly resource: string }): readonly ResourceVersion[];
  /** The resources of a kind in one version; none when it is not served. */
  ofKind(kind: GroupVersionKind): readonly { readonly resource: string; readonly namespaced: boolean }[];
  /** @returns a fresh object in the version. */
  fromHub(object: KubeObject, version: ResourceVersion): KubeObject | Promise<KubeObject>;
  /**
   * Defaults and conversion; takes over its argument.
   * @param apiVersion that of the hub; custom resources have none of their own and go back to the version they came in
   */
  toHub(object: KubeObject, version: ResourceVersion, apiVersion: string | undefined): KubeObject | Promise<KubeObject>;
}

export interface WebhookMetrics {
  called(
    name: string,
    type: string,
    operation: string,
    outcome: { readonly seconds: number; readonly code: number; readonly rejected: boolean },
  ): void;
  rejected(name: string, type: string, operation: string, errorType: string, code: number): void;
}

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
  /** --admission-control, the list that was before them: these and no others; empty when it is not given. */
  readonly only: readonly string[];
}

/**
 * @returns the plugins that run, in order.
 * @throws Error with all that is wrong: names that upstream does not know, names in both lists, both ways at once.
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

/** @throws ConfigError that names the plugin whose configuration cannot be used. Source: k8s.io/apiserver pkg/admission/plugins.go */
export function makePlugins(selection: PluginSelection, ctx: PluginContext): AdmissionPlugin[] {
  return selectPlugins(selection).map(({ name, make }) => {
    try {
      return make(ctx);
    } catch (err) {
      const text = `failed to initialize admission: couldn't init admission plugin ${goQuote(name)}: ${(err as Error).message}`;
      throw new ConfigError(text, { cause: err });
    }
  });
}
