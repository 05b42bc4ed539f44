import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { namespaces, validatingWebhookConfigurations } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type PeerAnswer, type PeerRequest, startTlsPeer } from "../../testing/tls-peer.ts";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { type Invocation, WebhookDispatcher } from "./dispatch.ts";
import type { ResourceVersion } from "./matcher.ts";

const everything = [{ operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"] }];

/** A dispatcher over one configuration with one webhook, and how its calls were counted. */
async function aDispatcher(
  t: TestContext,
  more: object,
  answer: (request: PeerRequest) => PeerAnswer | Promise<PeerAnswer> = () => ({ body: {} }),
  versions: readonly ResourceVersion[] = [],
) {
  const peer = await startTlsPeer(t, answer);
  const clientConfig = { url: peer.url, caBundle: Buffer.from(peer.ca).toString("base64") };
  const webhook = { name: "hook.example.com", rules: everything, sideEffects: "None", admissionReviewVersions: ["v1"] };
  const configuration = { metadata: { name: "hooks" }, webhooks: [{ ...webhook, clientConfig, timeoutSeconds: 30, ...more }] };
  const client = newFakeClient();
  client.put(validatingWebhookConfigurations, configuration);
  client.put(namespaces, { metadata: { name: "web", labels: { stage: "stored" } } });
  const informers = newInformerFactory(client, { log: discardLogger, clock: newFakeClock() });
  const counted: string[] = [];
  const ctx = {
    ...{ informers, client, turns: new Turns(), log: discardLogger, configurationOf: () => undefined },
    ...{ proxyCertificate: { current: undefined }, resolveService: () => ({ host: "127.0.0.1", port: 1 }) },
    versions: {
      of: () => versions,
      fromHub: async (object: KubeObject, { group, version }: ResourceVersion) => ({
        ...object,
        apiVersion: `${group}/${version}`,
      }),
    },
    webhookMetrics: {
      called: (_name: string, _type: string, _operation: string, { code, rejected }: { code: number; rejected: boolean }) =>
        void counted.push(`${code}${rejected ? " rejected" : ""}`),
      rejected: () => {},
    },
  } as unknown as PluginContext;
  const dispatcher = new WebhookDispatcher(ctx, {
    ...{ configurations: validatingWebhookConfigurations, plugin: "ValidatingAdmissionWebhook", type: "validating" },
    failedOpenPrefix: "failed-open.",
  });
  const end = new AbortController();
  t.after(() => end.abort());
  informers.start(end.signal);
  await informers.waitForSync(end.signal);
  const match = async (attributes: AdmissionAttributes): Promise<Invocation | undefined> => {
    const [registered] = dispatcher.registered();
    return registered && dispatcher.match(registered, attributes);
  };
  return { dispatcher, client, counted, match, peer };
}

function aWrite(more: Partial<AdmissionAttributes> = {}) {
  const annotations: string[] = [];
  const attributes = {
    operation: "CREATE",
    kind: { group: "", version: "v1", kind: "ConfigMap" },
    resource: { group: "", version: "v1", resource: "configmaps" },
    ...{ subresource: "", namespace: "web", name: "a", object: { metadata: { name: "a" } }, oldObject: undefined },
    ...{ user: { name: "joe", groups: [] }, dryRun: false, signal: new AbortController().signal },
    annotate: (key: string) => void annotations.push(key),
    warn: () => {},
    ...more,
  } as AdmissionAttributes;
  return { attributes, annotations };
}

const labelled = (stage: string): KubeObject => ({ metadata: { name: "web", labels: { stage } } });
const namespaceKind = {
  kind: { group: "", version: "v1", kind: "Namespace" },
  resource: { group: "", version: "v1", resource: "namespaces" },
  name: "web",
};

for (const { what, write, stage } of [
  { what: "an object", write: {}, stage: "stored" },
  { what: "a new namespace", write: { ...namespaceKind, object: labelled("new") }, stage: "new" },
  {
    what: "an updated namespace",
    write: { ...namespaceKind, operation: "UPDATE", object: labelled("new"), oldObject: labelled("stored") },
    stage: "new",
  },
  {
    what: "a deleted namespace",
    write: { ...namespaceKind, operation: "DELETE", object: undefined, oldObject: labelled("stored") },
    stage: "stored",
  },
  {
    what: "a namespace's status",
    write: {
      ...namespaceKind,
      operation: "UPDATE",
      subresource: "status",
      object: labelled("new"),
      oldObject: labelled("stored"),
    },
    stage: "stored",
  },
] as const) {
  test(`the namespace selector of a webhook sees the ${stage} labels for ${what}`, async (t) => {
    for (const wanted of ["new", "stored"]) {
      const { match } = await aDispatcher(t, { namespaceSelector: { matchLabels: { stage: wanted } } });
      const { attributes } = aWrite(write as Partial<AdmissionAttributes>);
      assert.equal((await match(attributes)) !== undefined, wanted === stage, `selects ${wanted}`);
    }
  });
}

test("a webhook is called according to its present configuration, and not after its deletion", async (t) => {
  const { dispatcher, client } = await aDispatcher(t, {});
  const names = () => dispatcher.registered().map(({ webhook }) => webhook.name);
  assert.deepEqual(names(), ["hook.example.com"]);
  client.put(validatingWebhookConfigurations, { metadata: { name: "hooks" }, webhooks: [{ name: "other" }] } as KubeObject);
  await waitFor(() => names()[0] === "other", { what: "the change" });
  client.put(validatingWebhookConfigurations, { metadata: { name: "first" }, webhooks: [{ name: "one" }] } as KubeObject);
  await waitFor(() => names().length === 2, { what: "the second configuration" });
  assert.deepEqual(names(), ["one", "other"]);
  client.remove(validatingWebhookConfigurations, "hooks");
  await settle(50);
  assert.deepEqual(names(), ["one"]);
});

for (const { policy, want } of [
  { policy: "Ignore", want: ["passed over", "503", ["failed-open.round_1_index_0"]] },
  { policy: "Fail", want: ['Internal error occurred: failed calling webhook "hook.example.com"', "503 rejected", []] },
]) {
  test(`a webhook that breaks off is counted and annotated by its failure policy ${policy}`, async (t) => {
    const { dispatcher, match, counted } = await aDispatcher(t, { failurePolicy: policy }, () => ({ body: undefined }));
    const { attributes, annotations } = aWrite();
    const outcome = await dispatcher
      .call((await match(attributes)) as Invocation, attributes, 1, () => "used")
      .then(
        (used) => used ?? "passed over",
        ({ message }: Error) => message.slice(0, String(want[0]).length),
      );
    assert.deepEqual([outcome, counted.join(), annotations], want);
  });
}

test("a request that is cancelled during a call is not admitted by the failure policy Ignore", async (t) => {
  const request = new AbortController();
  const { dispatcher, match } = await aDispatcher(t, { failurePolicy: "Ignore" }, () => {
    request.abort(new Error("the client has gone"));
    return new Promise<PeerAnswer>(() => {});
  });
  const { attributes, annotations } = aWrite({ signal: request.signal });
  const called = dispatcher.call((await match(attributes)) as Invocation, attributes, 0, () => "used");
  await assert.rejects(called, { message: "the client has gone" });
  assert.deepEqual(annotations, []);
});

for (const { status, code, message } of [
  { status: { code: 200, message: "no" }, code: 400, message: ": no" },
  { status: { code: 399, reason: "Because" }, code: 400, message: ": Because" },
  { status: { code: 429, message: "later" }, code: 429, message: ": later" },
  { status: undefined, code: 400, message: " without explanation" },
]) {
  test(`a refusal of a webhook with ${JSON.stringify(status)} is ${code}, and counted as such`, async (t) => {
    const { dispatcher, match, counted } = await aDispatcher(t, {}, ({ body }) => {
      const { apiVersion, request } = JSON.parse(body);
      return { body: { apiVersion, kind: "AdmissionReview", response: { uid: request.uid, allowed: false, status } } };
    });
    const { attributes } = aWrite();
    const called = dispatcher.call((await match(attributes)) as Invocation, attributes, 0, () => "used");
    await assert.rejects(called, { code, message: `admission webhook "hook.example.com" denied the request${message}` });
    assert.deepEqual(counted, [`${code} rejected`]);
  });
}

for (const { sideEffects, isCalled } of [
  { sideEffects: "None", isCalled: true },
  { sideEffects: "NoneOnDryRun", isCalled: true },
  { sideEffects: "Some", isCalled: false },
  { sideEffects: "Unknown", isCalled: false },
]) {
  test(`a webhook with the side effects ${sideEffects} is ${isCalled ? "" : "not "}called for a dry run`, async (t) => {
    const { dispatcher, match, peer } = await aDispatcher(t, { sideEffects, failurePolicy: "Ignore" });
    const { attributes } = aWrite({ dryRun: true });
    const called = dispatcher.call((await match(attributes)) as Invocation, attributes, 0, () => "used");
    if (isCalled) await called;
    else await assert.rejects(called, /"hook.example.com" does not support dry run/);
    assert.equal(peer.requests.length, isCalled ? 1 : 0);
  });
}

const deployments = ["v1", "v1beta1"].map((version) => ({
  ...{ group: "apps", version, resource: "deployments", kind: "Deployment" },
}));
const ofDeployment = { kind: { group: "apps", version: "v1", kind: "Deployment" }, resource: deployments[0]! };
const ofScale = { kind: { group: "autoscaling", version: "v1", kind: "Scale" }, resource: deployments[0]!, subresource: "scale" };
for (const { what, write, want } of [
  {
    what: "a resource sees both objects in its version",
    write: ofDeployment,
    want: ["apps/v1beta1", "apps/v1beta1", "Deployment"],
  },
  { what: "a subresource of another kind sees them as they are", write: ofScale, want: ["old", "new", "Scale"] },
]) {
  test(`a webhook for another version of ${what}`, async (t) => {
    const rules = [{ operations: ["*"], apiGroups: ["apps"], apiVersions: ["v1beta1"], resources: ["deployments", "*/scale"] }];
    const { dispatcher, match } = await aDispatcher(t, { rules }, undefined, deployments);
    const object = (apiVersion: string): KubeObject => ({ apiVersion, metadata: { name: "a" } });
    const { attributes } = aWrite({ operation: "UPDATE", ...write, oldObject: object("old"), object: object("new") });
    const invocation = (await match(attributes)) as Invocation;
    const shown = await dispatcher.shown(invocation, attributes);
    assert.deepEqual([shown.oldObject?.apiVersion, shown.object?.apiVersion, shown.kind.kind], want);
    assert.equal(shown.resource.version, "v1beta1");
    assert.deepEqual(attributes.object?.apiVersion, "new", "the object of the write is not changed");
  });
}

for (const allowed of [true, false]) {
  test(`each warning of a webhook that ${allowed ? "allows" : "refuses"} is passed on`, async (t) => {
    const warnings: string[] = [];
    const { dispatcher, match } = await aDispatcher(t, {}, ({ body }) => {
      const { apiVersion, request } = JSON.parse(body);
      const response = { uid: request.uid, allowed, warnings: ["first", "second"] };
      return { body: { apiVersion, kind: "AdmissionReview", response } };
    });
    const { attributes } = aWrite({ warn: (text) => void warnings.push(text) });
    const called = dispatcher.call((await match(attributes)) as Invocation, attributes, 0, () => "used");
    if (allowed) assert.equal(await called, "used");
    else await assert.rejects(called, { code: 400 });
    assert.deepEqual(warnings, ["first", "second"]);
  });
}

for (const { failurePolicy, want } of [
  { failurePolicy: "Ignore", want: [undefined, "400"] },
  {
    failurePolicy: "Fail",
    want: [
      "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)",
      "400 rejected",
    ],
  },
]) {
  test(`a webhook that accepts no known version of reviews fails by its policy ${failurePolicy}, and is not called`, async (t) => {
    const { dispatcher, match, peer, counted } = await aDispatcher(t, { admissionReviewVersions: ["v2"], failurePolicy });
    const { attributes } = aWrite();
    const outcome = await dispatcher
      .call((await match(attributes)) as Invocation, attributes, 0, () => "used")
      .catch(({ message }: Error) => message.replace(/^.*"hook.example.com": /, ""));
    assert.deepEqual([outcome, ...counted], want);
    assert.equal(peer.requests.length, 0);
  });
}
