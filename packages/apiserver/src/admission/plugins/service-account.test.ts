/** Accounts that are created late or limit their secrets, and mirror pods; without a server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { internalError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { serviceAccounts } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { serviceAccount } from "./service-account.ts";

/** The plugin with these accounts in its cache; others exist in `client` only. */
function pluginWith(...cached: KubeObject[]) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const get = (key: string) => cached.find(({ metadata }) => key === `web/${metadata.name}`);
  const informers = { for: () => ({ synced: true, lister: { get } }) };
  const plugin = serviceAccount({ informers, client, clock } as unknown as PluginContext);
  const request = (object: unknown) =>
    ({
      ...{ operation: "CREATE", resource: { group: "", version: "v1", resource: "pods" }, subresource: "" },
      ...{ namespace: "web", name: "p", object, signal: new AbortController().signal },
    }) as AdmissionAttributes;
  const admit = async (object: object, more: object = {}) => plugin.admit?.({ ...request(object), ...more });
  const validate = async (object: object, more: object = {}) => plugin.validate?.({ ...request(object), ...more });
  return { client, clock, admit, validate };
}

const account = (name: string, more: object = {}, metadata: object = {}): KubeObject => ({
  metadata: { name, namespace: "web", ...metadata },
  ...more,
});
const aPod = (spec: object = {}, metadata: object = {}) => ({
  metadata: { name: "p", ...metadata },
  spec: { containers: [{ name: "c", image: "i" }], ...spec } as Record<string, unknown>,
});

test("a pod waits a second for its namespace's default account, and for no other one", async () => {
  const { client, clock, admit } = pluginWith();
  const lookups = () => client.actions.filter(({ verb }) => verb === "get").length;
  await assert.rejects(admit(aPod({ serviceAccountName: "other" })), /account web\/other: serviceaccount "other" not found/);
  assert.equal(lookups(), 1);
  const late = admit(aPod());
  for (let i = 0; i < 8; i++) await clock.advance(100);
  client.put(serviceAccounts, account("default"));
  await clock.advance(100);
  await late;
  assert.equal(lookups(), 1 + 10 + 1, "ten times, and once more for what the account limits");
  client.remove(serviceAccounts, "web/default");
  const never = assert.rejects(admit(aPod()), /account web\/default: serviceaccount "default" not found/);
  for (let i = 0; i < 9; i++) await clock.advance(100);
  await settle();
  await never;
  assert.equal(lookups(), 12 + 10);
});

test("a pod's pull secrets are a copy of its account's", async () => {
  const imagePullSecrets = [{ name: "mine" }];
  const { admit } = pluginWith(account("default", { imagePullSecrets }));
  const pod = aPod();
  await admit(pod);
  const given = pod.spec["imagePullSecrets"] as unknown[];
  assert.deepEqual(given, imagePullSecrets);
  assert.ok(given !== imagePullSecrets && given[0] !== imagePullSecrets[0]);
});

test("an empty list of pull secrets is filled from the account as a missing one is, others are kept", async () => {
  const { admit } = pluginWith(account("default", { imagePullSecrets: [{ name: "mine" }] }));
  for (const [given, want] of [
    [undefined, "mine"],
    [[], "mine"],
    [[{ name: "own" }], "own"],
  ] as const) {
    const pod = aPod(given && { imagePullSecrets: [...given] });
    await admit(pod).catch(() => {});
    assert.deepEqual(pod.spec["imagePullSecrets"], [{ name: want }]);
  }
});

test("a pod names its account in the deprecated field too, and mounts the token, the authority and the namespace", async () => {
  const { admit } = pluginWith(account("default"), account("robot"));
  for (const [given, name] of [
    [{}, "default"],
    [{ serviceAccountName: "robot", serviceAccount: "other" }, "robot"],
  ] as const) {
    const pod = aPod(given);
    await admit(pod);
    assert.deepEqual([pod.spec["serviceAccountName"], pod.spec["serviceAccount"]], [name, name]);
    const [{ name: _, ...volume } = { name: "" }] = pod.spec["volumes"] as { name: string }[];
    assert.deepEqual(volume, {
      projected: {
        sources: [
          { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
          { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
          { downwardAPI: { items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }] } },
        ],
        defaultMode: 0o644,
      },
    });
  }
});

test("an account that cannot be looked up is not waited for", async () => {
  const { client, clock, admit } = pluginWith();
  client.react("get", "serviceaccounts", () => {
    throw internalError(new Error("etcd is away"));
  });
  const refused = assert.rejects(admit(aPod()), /error looking up service account web\/default: .*: etcd is away/);
  await setImmediate();
  assert.deepEqual([client.actions.length, clock.waiting], [1, 0]);
  await refused;
});

for (const [value, isLimited] of [
  ...["true", "True", "TRUE", "t", "T", "1"].map((text) => [text, true] as const),
  ...["false", "0", "yes", "", "tRUE"].map((text) => [text, false] as const),
]) {
  test(`an account with the annotation enforce-mountable-secrets ${JSON.stringify(value)} limits ${isLimited ? "" : "no "}secrets`, async () => {
    const { admit } = pluginWith(account("default", {}, { annotations: { "kubernetes.io/enforce-mountable-secrets": value } }));
    const admitted = admit(aPod({ volumes: [{ name: "v", secret: { secretName: "hidden" } }] }));
    if (isLimited) await assert.rejects(admitted, /secret.secretName="hidden" is not allowed/);
    else await admitted;
  });
}

const hidden = { name: "hidden" };
for (const { name, spec, want } of [
  {
    name: "a secret that is its second reference",
    spec: {
      volumes: [
        { name: "a", configMap: { name: "open" } },
        { name: "b", secret: { secretName: "hidden" } },
      ],
    },
    want: /a mirror pod may not reference secrets/,
  },
  {
    name: "an account",
    spec: { serviceAccountName: "default" },
    want: /a mirror pod may not reference service accounts/,
  },
  {
    name: "a token in its second volume",
    spec: {
      volumes: [
        { name: "a", emptyDir: {} },
        { name: "b", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } },
      ],
    },
    want: /a mirror pod may not use ServiceAccountToken volume projections/,
  },
]) {
  test(`a mirror pod is refused for ${name}`, async () => {
    const { admit } = pluginWith();
    await assert.rejects(admit(aPod(spec, { annotations: { "kubernetes.io/config.mirror": "h" } })), want);
  });
}

test("an account limits the second envFrom too, and what a webhook has added after admission", async () => {
  const annotations = { "kubernetes.io/enforce-mountable-secrets": "true" };
  const { admit, validate } = pluginWith(account("default", { secrets: [{ name: "mine" }] }, { annotations }));
  const envFrom = [{ secretRef: { name: "mine" } }, { secretRef: hidden }];
  const why = /container c with envFrom referencing secret.secretName="hidden" is not allowed/;
  await assert.rejects(admit(aPod({ containers: [{ name: "c", image: "i", envFrom }] })), why);
  const container = { name: "c", image: "i", envFrom: envFrom.slice(0, 1) };
  const pod = aPod({ containers: [container] });
  await admit(pod);
  await validate(pod);
  container.envFrom = envFrom;
  await assert.rejects(validate(pod), why);
});

test("a secret that an account may mount is not one to pull images with, and the other way round", async () => {
  const annotations = { "kubernetes.io/enforce-mountable-secrets": "true" };
  const secrets = { secrets: [{ name: "mounted" }], imagePullSecrets: [{ name: "a" }, { name: "pulled" }] };
  const { admit } = pluginWith(account("default", secrets, { annotations }));
  await admit(aPod({ imagePullSecrets: [{ name: "a" }, { name: "pulled" }] }));
  await assert.rejects(
    admit(aPod({ imagePullSecrets: [{ name: "pulled" }, { name: "mounted" }] })),
    /imagePullSecrets\[1\].name="mounted" is not allowed/,
  );
  const volumes = [{ name: "v", secret: { secretName: "pulled" } }];
  await assert.rejects(admit(aPod({ volumes })), /volume with secret.secretName="pulled" is not allowed/);
});

test("an account limits containers that are added for debugging, and those alone", async () => {
  const annotations = { "kubernetes.io/enforce-mountable-secrets": "true" };
  const { validate } = pluginWith(account("default", { secrets: [{ name: "mine" }] }, { annotations }));
  const debugger_ = (secret: string) => ({ name: "d", image: "i", envFrom: [{ secretRef: { name: secret } }] });
  const added = { operation: "UPDATE", subresource: "ephemeralcontainers" };
  const volumes = [{ name: "old", secret: { secretName: "hidden" } }];
  await validate(aPod({ volumes, ephemeralContainers: [debugger_("mine")] }), added);
  await assert.rejects(
    validate(aPod({ ephemeralContainers: [debugger_("mine"), debugger_("hidden")] }), added),
    /ephemeral container d with envFrom referencing secret.secretName="hidden" is not allowed/,
  );
});

test("a pod gets a token's volume when a container of it lacks the mount, init containers first, and no other one", async () => {
  const { admit } = pluginWith(account("default"));
  const volumeMounts = [{ name: "own", mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" }];
  const container = (name: string, more: object = {}) => ({ name, image: "i", ...more });
  const provided = aPod({ containers: [container("a", { volumeMounts }), container("b", { volumeMounts })] });
  await admit(provided);
  assert.equal(provided.spec["volumes"], undefined);
  const initContainers = [container("i")];
  const mixed = aPod({ initContainers, containers: [container("a", { volumeMounts })] });
  await admit(mixed);
  assert.equal((mixed.spec["volumes"] as unknown[]).length, 1);
  assert.equal((initContainers[0] as { volumeMounts?: unknown[] }).volumeMounts?.length, 1);
});

test("a pod whose client has left no longer waits for its account", async () => {
  const { clock, admit } = pluginWith();
  const client = new AbortController();
  const ended = assert.rejects(admit(aPod(), { signal: client.signal }));
  await waitFor(() => clock.waiting > 0, { what: "the pod to wait" });
  client.abort(new Error("gone"));
  await ended;
  assert.equal(clock.waiting, 0);
});

for (const { own, of, mounts } of [
  { own: undefined, of: undefined, mounts: true },
  { own: undefined, of: false, mounts: false },
  { own: true, of: false, mounts: true },
  { own: false, of: true, mounts: false },
]) {
  test(`a pod that says ${own} and whose account says ${of} mounts ${mounts ? "the" : "no"} token`, async () => {
    const { admit } = pluginWith(account("default", of === undefined ? {} : { automountServiceAccountToken: of }));
    const pod = aPod(own === undefined ? {} : { automountServiceAccountToken: own });
    await admit(pod);
    assert.equal(pod.spec["volumes"] !== undefined, mounts);
  });
}

test("a pod that has a volume for the token gets no second one", async () => {
  const { admit } = pluginWith(account("default"));
  const volumes = [{ name: "other" }, { name: "kube-api-access-x", projected: {} }];
  const pod = aPod({ volumes });
  await admit(pod);
  assert.deepEqual(pod.spec["volumes"], volumes);
  hasFields(pod.spec["containers"], [{ volumeMounts: [{ name: "kube-api-access-x" }] }]);
});
