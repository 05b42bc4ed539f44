import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { startTestServer } from "../testing/start-test-server.ts";
import { makePlugins } from "./catalogue.ts";
import { readPluginConfigurations } from "./configuration.ts";
import type { PluginContext } from "./plugin-context.ts";

function fileWith(t: TestContext, files: Record<string, unknown>): string {
  const directory = mkdtempSync(join(tmpdir(), "cox-admission-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(directory, name), typeof content === "string" ? content : JSON.stringify(content));
  }
  return join(directory, "admission.yaml");
}

const configuration = (plugins: object[], apiVersion = "apiserver.config.k8s.io/v1"): object => ({
  apiVersion,
  kind: "AdmissionConfiguration",
  plugins,
});

test("a plugin's configuration is in the file or in another one that it names", (t) => {
  const limits = { apiVersion: "eventratelimit.admission.k8s.io/v1alpha1", kind: "Configuration", limits: [] };
  const of = readPluginConfigurations(
    fileWith(t, {
      "admission.yaml": configuration([
        { name: "EventRateLimit", configuration: limits },
        { name: "PodNodeSelector", path: "selectors.yaml" },
        { name: "ResourceQuota" },
      ]),
      "selectors.yaml": "podNodeSelectorPluginConfig:\n  web: a=b\n",
    }),
  );
  assert.deepEqual(of("EventRateLimit"), limits);
  assert.deepEqual(of("PodNodeSelector"), { podNodeSelectorPluginConfig: { web: "a=b" } });
  assert.equal(of("ResourceQuota"), undefined);
  assert.equal(readPluginConfigurations("")("PodNodeSelector"), undefined);
});

test("of two entries for a plugin the first counts, and in an entry its configuration before its path, which may be absolute", (t) => {
  const named = (name: string): object => ({ podNodeSelectorPluginConfig: { [name]: "a=b" } });
  const elsewhere = fileWith(t, { "admission.yaml": named("elsewhere") });
  const of = readPluginConfigurations(
    fileWith(t, {
      "admission.yaml": configuration([
        { name: "PodNodeSelector", configuration: named("first") },
        { name: "PodNodeSelector", configuration: named("second") },
        { name: "Both", configuration: named("inside"), path: "gone" },
        { name: "Elsewhere", path: elsewhere },
        { name: "Elsewhere", configuration: named("second") },
      ]),
    }),
  );
  assert.deepEqual(["PodNodeSelector", "Both", "Elsewhere"].map(of), ["first", "inside", "elsewhere"].map(named));
});

for (const configured of ["text", 5, true]) {
  test(`a plugin's configuration ${configured} is refused`, (t) => {
    const file = fileWith(t, { "admission.yaml": configuration([{ name: "ResourceQuota", configuration: configured }]) });
    const message = "the configuration of admission plugin ResourceQuota is not a map";
    assert.throws(() => readPluginConfigurations(file), { message });
  });
}

test("the file may be of the older version, a null configuration is none, and a plugin's name may be any word", (t) => {
  const selectors = { podNodeSelectorPluginConfig: { web: "a=b" } };
  const plugins = [
    { name: "PodNodeSelector", configuration: null, path: "selectors.yaml" },
    { name: "constructor", configuration: selectors },
  ];
  const files = { "admission.yaml": configuration(plugins, "apiserver.k8s.io/v1alpha1"), "selectors.yaml": selectors };
  const of = readPluginConfigurations(fileWith(t, files));
  assert.deepEqual([of("PodNodeSelector"), of("constructor"), of("toString")], [selectors, selectors, undefined]);
});

for (const [plugin, apiVersion, kind] of [
  ["PodSecurity", "pod-security.admission.config.k8s.io/v1alpha1", "PodSecurityConfiguration"],
  ["PodSecurity", "pod-security.admission.config.k8s.io/v1beta1", "PodSecurityConfiguration"],
  ["EventRateLimit", "eventratelimit.admission.k8s.io/v1alpha1", "Configuration"],
  ["ResourceQuota", "apiserver.config.k8s.io/v1", "ResourceQuotaConfiguration"],
  ["ResourceQuota", "resourcequota.admission.k8s.io/v1beta1", "Configuration"],
  ["ResourceQuota", "resourcequota.admission.k8s.io/v1alpha1", "Configuration"],
  ["MutatingAdmissionWebhook", "apiserver.config.k8s.io/v1", "WebhookAdmissionConfiguration"],
  ["ValidatingAdmissionWebhook", "apiserver.config.k8s.io/v1alpha1", "WebhookAdmission"],
  ["PodTolerationRestriction", "podtolerationrestriction.admission.k8s.io/v1alpha1", "Configuration"],
] as const) {
  test(`${plugin} takes its configuration as ${apiVersion}, and no other kind of it`, (t) => {
    const own = { apiVersion, kind };
    const file = (content: object) =>
      fileWith(t, { "admission.yaml": configuration([{ name: plugin, configuration: content }]) });
    assert.deepEqual(readPluginConfigurations(file(own))(plugin), own);
    assert.throws(() => readPluginConfigurations(file({ ...own, kind: "Other" })), /no kind "Other" is registered for version/);
  });
}

test("the whole file may be the configuration of one of two older plugins", (t) => {
  const of = readPluginConfigurations(fileWith(t, { "admission.yaml": "imagePolicy:\n  kubeConfigFile: /x\n" }));
  assert.deepEqual(of("ImagePolicyWebhook"), { imagePolicy: { kubeConfigFile: "/x" } });
  assert.equal(of("PodNodeSelector"), undefined);
  const whole = { ...configuration([]), imagePolicy: { kubeConfigFile: "/x" } };
  const named = readPluginConfigurations(fileWith(t, { "admission.yaml": whole }));
  assert.equal(named("ImagePolicyWebhook"), undefined, "a file that says its kind is of that kind");
});

for (const { name, file, want } of [
  { name: "of another kind", file: { kind: "Pod", apiVersion: "v1" }, want: /no kind "Pod" is registered for version "v1"/ },
  { name: "that names a file which is not there", file: configuration([{ name: "X", path: "gone" }]), want: /gone/ },
  {
    name: "with a plugin's configuration of another version",
    file: configuration([{ name: "PodSecurity", configuration: { kind: "PodSecurityConfiguration", apiVersion: "v1" } }]),
    want: /PodSecurity: no kind "PodSecurityConfiguration" is registered for version "v1"/,
  },
]) {
  test(`refuses a file ${name}`, (t) => {
    const path = fileWith(t, { "admission.yaml": file });
    assert.throws(() => readPluginConfigurations(path), want);
  });
}

test("a server with a configuration file: standards by default, exemptions, selectors, limits", async (t) => {
  const path = fileWith(t, {
    "admission.yaml": configuration([
      {
        name: "PodSecurity",
        configuration: {
          apiVersion: "pod-security.admission.config.k8s.io/v1beta1",
          kind: "PodSecurityConfiguration",
          defaults: { enforce: "baseline", "enforce-version": "latest" },
          exemptions: { namespaces: ["kube-system"] },
        },
      },
      { name: "PodNodeSelector", configuration: { podNodeSelectorPluginConfig: { clusterDefaultNodeSelector: "pool=web" } } },
      {
        name: "EventRateLimit",
        configuration: {
          apiVersion: "eventratelimit.admission.k8s.io/v1alpha1",
          kind: "Configuration",
          limits: [{ type: "Namespace", qps: 1, burst: 1 }],
        },
      },
    ]),
  });
  const server = await startTestServer(t, [
    `--admission-control-config-file=${path}`,
    "--enable-admission-plugins=PodNodeSelector,EventRateLimit,SecurityContextDeny,OwnerReferencesPermissionEnforcement,PodTolerationRestriction",
    "--disable-admission-plugins=ServiceAccount",
  ]);
  const aPod = (name: string, spec: object = {}): object => ({
    metadata: { name },
    spec: { containers: [{ name: "c", image: "busybox" }], ...spec },
  });
  const create = (namespace: string, pod: object) => server.request("POST", `/api/v1/namespaces/${namespace}/pods`, pod);

  const refused = await create("default", aPod("a", { hostNetwork: true }));
  assert.equal(refused.code, 403);
  assert.match(refused.body.message, /violates PodSecurity "baseline:latest": host namespaces/);
  assert.equal((await create("kube-system", aPod("a", { hostNetwork: true }))).code, 201);

  const selected = await create("default", aPod("b"));
  assert.equal(selected.code, 201);
  assert.deepEqual(selected.body.spec.nodeSelector, { pool: "web" });

  const denied = await create("default", aPod("c", { securityContext: { runAsUser: 1 } }));
  assert.equal(denied.body.message, 'pods "c" is forbidden: pod.Spec.SecurityContext.RunAsUser is forbidden');

  const event = (name: string) => ({ metadata: { name }, involvedObject: { kind: "Pod", name: "b", namespace: "default" } });
  const events = "/api/v1/namespaces/default/events";
  assert.equal((await server.request("POST", events, event("one"))).code, 201);
  const limited = await server.request("POST", events, event("two"));
  assert.equal(limited.code, 429);
  assert.equal(limited.body.message, "Too many requests: limit reached on type Namespace for key default");
});

for (const { name, plugin, configuration, want } of [
  {
    name: "EventRateLimit",
    plugin: "EventRateLimit",
    configuration: { apiVersion: "eventratelimit.admission.k8s.io/v1alpha1", kind: "Configuration", limits: [] },
    want: "limits: Required value: limits must have at least one item",
  },
  {
    name: "PodSecurity",
    plugin: "PodSecurity",
    configuration: {
      apiVersion: "pod-security.admission.config.k8s.io/v1beta1",
      kind: "PodSecurityConfiguration",
      defaults: { enforce: "x" },
    },
    want: 'defaults.enforce: Invalid value: "x": must be one of privileged, baseline, restricted',
  },
  { name: "ImagePolicyWebhook without one", plugin: "ImagePolicyWebhook", configuration: undefined, want: "no config specified" },
  {
    name: "MutatingAdmissionWebhook",
    plugin: "MutatingAdmissionWebhook",
    configuration: {
      apiVersion: "apiserver.config.k8s.io/v1",
      kind: "WebhookAdmissionConfiguration",
      kubeConfigFile: "relative",
    },
    want: 'kubeConfigFile: Invalid value: "relative": must be an absolute file path',
  },
]) {
  test(`a wrong configuration of ${name} ends the start`, (t) => {
    const plugins = configuration === undefined ? [] : [{ name: plugin, configuration }];
    const file = { apiVersion: "apiserver.config.k8s.io/v1", kind: "AdmissionConfiguration", plugins };
    const context = {
      configurationOf: readPluginConfigurations(fileWith(t, { "admission.yaml": file })),
      informers: { for: () => ({ addHandler() {} }) },
      metrics: newMetricsRegistry(),
      featureEnabled: () => true,
    } as unknown as PluginContext;
    assert.throws(() => makePlugins({ enable: [], disable: [], only: [plugin] }, context), {
      message: `failed to initialize admission: couldn't init admission plugin "${plugin}": ${want}`,
    });
  });
}
