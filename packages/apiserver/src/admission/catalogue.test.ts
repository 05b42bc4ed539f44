import assert from "node:assert/strict";
import { test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { type PluginSelection, pluginCatalogue, selectPlugins } from "./catalogue.ts";
import type { PluginContext } from "./plugin-context.ts";

const namesOf = (selection: Partial<PluginSelection>): string[] =>
  selectPlugins({ enable: [], disable: [], only: [], ...selection }).map(({ name }) => name);

const byDefault = [
  "NamespaceLifecycle",
  "LimitRanger",
  "ServiceAccount",
  "TaintNodesByCondition",
  "PodSecurity",
  "Priority",
  "DefaultTolerationSeconds",
  "DefaultStorageClass",
  "StorageObjectInUseProtection",
  "PersistentVolumeClaimResize",
  "RuntimeClass",
  "CertificateApproval",
  "CertificateSigning",
  "CertificateSubjectRestriction",
  "DefaultIngressClass",
  "MutatingAdmissionWebhook",
  "ValidatingAdmissionWebhook",
  "ResourceQuota",
];

test("knows the 35 plugins of 1.23, each once", () => {
  assert.equal(pluginCatalogue.length, 35);
  assert.equal(new Set(pluginCatalogue.map(({ name }) => name)).size, 35);
});

for (const { name, selection, want } of [
  { name: "nothing", selection: {}, want: byDefault },
  {
    name: "plugins to enable, in any order",
    selection: { enable: ["AlwaysDeny", "NodeRestriction", "AlwaysPullImages", "LimitRanger"] },
    want: [
      ...byDefault.slice(0, 3),
      "NodeRestriction",
      "TaintNodesByCondition",
      "AlwaysPullImages",
      ...byDefault.slice(4),
      "AlwaysDeny",
    ],
  },
  { name: "plugins to disable", selection: { disable: [...byDefault.slice(1), "AlwaysAdmit"] }, want: ["NamespaceLifecycle"] },
  {
    name: "the one exclusive list",
    selection: { only: ["ResourceQuota", "AlwaysAdmit", "NamespaceLifecycle"] },
    want: ["AlwaysAdmit", "NamespaceLifecycle", "ResourceQuota"],
  },
]) {
  test(`the plugins that run, given ${name}`, () => assert.deepEqual(namesOf(selection), want));
}

for (const { name, selection, want } of [
  { name: "an unknown name", selection: { enable: ["Nope"] }, want: 'enable-admission-plugins plugin "Nope" is unknown' },
  {
    name: "several",
    selection: { enable: ["Nope"], disable: ["Neither"] },
    want: '[enable-admission-plugins plugin "Nope" is unknown, disable-admission-plugins plugin "Neither" is unknown]',
  },
  {
    name: "names in both lists",
    selection: { enable: ["PodSecurity", "AlwaysDeny"], disable: ["AlwaysDeny", "PodSecurity"] },
    want: "[AlwaysDeny PodSecurity] in enable-admission-plugins and disable-admission-plugins overlapped",
  },
  {
    name: "both ways to choose",
    selection: { only: ["AlwaysAdmit"], enable: ["AlwaysDeny"] },
    want: "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive",
  },
  {
    name: "an exclusive list beside plugins to disable",
    selection: { only: ["AlwaysAdmit"], disable: ["AlwaysDeny"] },
    want: "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive",
  },
  { name: "an unknown name in the old list", selection: { only: ["x"] }, want: 'admission-control plugin "x" is unknown' },
]) {
  test(`refuses ${name}`, () => assert.throws(() => namesOf(selection), { message: want }));
}

/** Source: the call of admission.NewHandler in each plugin */
const handled: Readonly<Record<string, readonly string[]>> = {
  "": ["AlwaysAdmit"],
  CREATE: [
    ...["CertificateSubjectRestriction", "DefaultIngressClass", "DefaultStorageClass", "NamespaceAutoProvision"],
    ...["PersistentVolumeLabel", "PodNodeSelector", "RuntimeClass", "StorageObjectInUseProtection", "TaintNodesByCondition"],
  ],
  UPDATE: ["CertificateApproval", "CertificateSigning", "PersistentVolumeClaimResize"],
  "CREATE UPDATE": [
    ...["AlwaysPullImages", "DefaultTolerationSeconds", "DenyServiceExternalIPs", "EventRateLimit", "ExtendedResourceToleration"],
    ...["LimitPodHardAntiAffinityTopology", "LimitRanger", "OwnerReferencesPermissionEnforcement", "PodSecurity"],
    ...["PodSecurityPolicy", "PodTolerationRestriction", "Priority", "ResourceQuota", "SecurityContextDeny", "ServiceAccount"],
  ],
  "CREATE UPDATE DELETE": ["NamespaceExists", "NamespaceLifecycle", "NodeRestriction"],
  "CREATE UPDATE DELETE CONNECT": ["AlwaysDeny", "MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"],
};

test("each plugin handles the operations that it is for", () => {
  const client = newFakeClient();
  const clock = newFakeClock();
  const context = {
    ...{ client, clock, turns: new Turns(), log: discardLogger, metrics: newMetricsRegistry({}), featureEnabled: () => true },
    informers: newInformerFactory(client, { log: discardLogger, clock }),
    proxyCertificate: { current: undefined },
    configurationOf: (name: string) =>
      name === "EventRateLimit" ? { limits: [{ type: "Server", qps: 1, burst: 1 }] } : undefined,
  } as unknown as PluginContext;
  // ImagePolicyWebhook needs files for its configuration.
  for (const { name, make } of pluginCatalogue.filter(({ name }) => name !== "ImagePolicyWebhook")) {
    const plugin = make(context);
    const operations = (["CREATE", "UPDATE", "DELETE", "CONNECT"] as const).filter((one) => plugin.handles(one)).join(" ");
    assert.ok(handled[operations]?.includes(name), `${name}: ${operations}`);
  }
});
