import assert from "node:assert/strict";
import { test } from "node:test";
import { type PluginSelection, pluginCatalogue, selectPlugins } from "./catalogue.ts";

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
