/** Both plugins of admission webhooks with real calls: what they do to the object, the audit event, the metrics and the answer. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import {
  mutatingWebhookConfigurations,
  namespaces,
  validatingWebhookConfigurations,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTlsPeer } from "../../testing/tls-peer.ts";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { mutatingAdmissionWebhook } from "./mutating-admission-webhook.ts";
import { validatingAdmissionWebhook } from "./validating-admission-webhook.ts";

const configMaps = { group: "", version: "v1", resource: "configmaps" };
const configMap = { group: "", version: "v1", kind: "ConfigMap" };
const rules = [{ operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"] }];
const patchOf = (...operations: object[]) => ({
  ...{ allowed: true, patchType: "JSONPatch" },
  patch: Buffer.from(JSON.stringify(operations)).toString("base64"),
});

/** Fields of the webhook, and its answer: the response of a review; undefined breaks the connection. */
type Webhook = Record<string, unknown> & { readonly answer?: () => object | undefined | Promise<object | undefined> };

/** Both plugins with the same webhooks, in one configuration. */
async function webhooksOf(t: TestContext, ...webhooks: Webhook[]) {
  const called: number[] = [];
  const peer = await startTlsPeer(t, async ({ url, body }) => {
    const at = Number(/\d+/.exec(url)?.[0]);
    called.push(at);
    const { apiVersion, request } = JSON.parse(body);
    const { answer = () => ({ allowed: true }) } = webhooks[at] ?? {};
    const response = await answer();
    return { body: response && { apiVersion, kind: "AdmissionReview", response: { uid: request.uid, ...response } } };
  });
  const registered = webhooks.map(({ answer: _, ...more }, at) => ({
    ...{ name: `hook${at}.example.com`, rules, sideEffects: "None", admissionReviewVersions: ["v1"], timeoutSeconds: 30 },
    clientConfig: { url: `${peer.url}/${at}`, caBundle: Buffer.from(peer.ca).toString("base64") },
    ...more,
  }));
  const client = newFakeClient();
  for (const ref of [mutatingWebhookConfigurations, validatingWebhookConfigurations])
    client.put(ref, { metadata: { name: "hooks" }, webhooks: registered } as KubeObject);
  client.put(namespaces, { metadata: { name: "web" } });
  const informers = newInformerFactory(client, { log: discardLogger, clock: newFakeClock() });
  const counted: string[] = [];
  const tookSeconds: number[] = [];
  const ctx = {
    ...{ informers, client, turns: new Turns(), log: discardLogger, configurationOf: () => undefined },
    ...{ proxyCertificate: { current: undefined }, resolveService: () => ({ host: "127.0.0.1", port: 1 }) },
    versions: {
      of: () => [{ ...configMaps, kind: "ConfigMap" }],
      fromHub: (object: KubeObject) => structuredClone(object),
      toHub: (object: KubeObject) => object,
    },
    webhookMetrics: {
      called(name: string, type: string, operation: string, outcome: { seconds: number; code: number; rejected: boolean }) {
        counted.push(`${name} ${type} ${operation} ${outcome.code} ${outcome.rejected}`);
        tookSeconds.push(outcome.seconds);
      },
      rejected: (name: string, type: string, operation: string, errorType: string, code: number) =>
        void counted.push(`${name} ${type} ${operation} ${errorType} ${code}`),
    },
  } as unknown as PluginContext;
  const plugins = { mutating: mutatingAdmissionWebhook(ctx), validating: validatingAdmissionWebhook(ctx) };
  const end = new AbortController();
  t.after(() => end.abort());
  informers.start(end.signal);
  await informers.waitForSync(end.signal);
  return { ...plugins, called, counted, tookSeconds };
}

function aWrite(more: object = {}) {
  const [annotations, contents, warnings, took] = [
    new Map<string, string>(),
    new Map<string, string>(),
    [] as string[],
    [] as number[],
  ];
  const object = { kind: "ConfigMap", apiVersion: "v1", metadata: { name: "a" }, data: { x: "1" } };
  const attributes = {
    ...{
      operation: "CREATE",
      kind: configMap,
      resource: configMaps,
      subresource: "",
      namespace: "web",
      name: "a",
      dryRun: false,
    },
    ...{ object, oldObject: undefined, user: { name: "ann", groups: [] }, signal: new AbortController().signal },
    annotate: (key: string, value: string) => void annotations.set(key, value),
    annotateContent: (key: string, value: string) => void contents.set(key, value),
    warn: (text: string) => void warnings.push(text),
    webhookTook: (_type: string, ms: number) => void took.push(ms),
    ...more,
  } as unknown as AdmissionAttributes;
  return { attributes, annotations, contents, warnings, took, object: object as KubeObject & { data?: object } };
}

const place = "webhook.admission.k8s.io/round_0_index_0";
const about = (mutated: boolean) => JSON.stringify({ configuration: "hooks", webhook: "hook0.example.com", mutated });

test("a webhook's patch is applied to the object itself, and what it removes is gone", async (t) => {
  const patch = [
    { op: "remove", path: "/data" },
    { op: "add", path: "/metadata/labels", value: { a: "b" } },
  ];
  const { mutating } = await webhooksOf(t, { answer: () => patchOf(...patch) });
  const { attributes, object, annotations, contents } = aWrite();
  await mutating.admit?.(attributes);
  assert.deepEqual(object, { kind: "ConfigMap", apiVersion: "v1", metadata: { name: "a", labels: { a: "b" } } });
  assert.deepEqual([attributes.wantsAnotherRound, attributes.changes?.[0]?.paths], [true, ["/data", "/metadata/labels"]]);
  assert.deepEqual([...annotations], [[`mutation.${place}`, about(true)]]);
  const [[key, value] = []] = [...contents];
  assert.equal(key, `patch.${place}`, "the patch is content, which only some levels of the audit log");
  assert.deepEqual(JSON.parse(value ?? "").patch, patch);
});

test("of a long patch the first twenty paths are recorded, each up to 200 characters", async (t) => {
  const long = `/data/${"k".repeat(250)}`;
  const paths = [long, ...Array.from({ length: 24 }, (_, i) => `/data/k${i}`)];
  const { mutating } = await webhooksOf(t, {
    answer: () => patchOf(...paths.map((path) => ({ op: "add", path, value: "1" }))),
  });
  const { attributes } = aWrite();
  await mutating.admit?.(attributes);
  assert.deepEqual(attributes.changes?.[0]?.paths, [long.slice(0, 200), ...paths.slice(1, 20)]);
});

test("a patch that changes nothing asks for no other round", async (t) => {
  const { mutating } = await webhooksOf(t, { answer: () => patchOf({ op: "replace", path: "/data/x", value: "1" }) });
  const { attributes, annotations, contents } = aWrite();
  await mutating.admit?.(attributes);
  assert.deepEqual([attributes.wantsAnotherRound, attributes.changes], [undefined, undefined]);
  assert.deepEqual([[...annotations], contents.size], [[[`mutation.${place}`, about(false)]], 1]);
});

test("a patch in the second round is noted as one of that round", async (t) => {
  const { mutating } = await webhooksOf(t, {
    reinvocationPolicy: "IfNeeded",
    answer: () => patchOf({ op: "add", path: "/data/y", value: "2" }),
  });
  const { attributes, object, annotations, contents } = aWrite();
  await mutating.admit?.(attributes);
  object.data = { x: "2" };
  attributes.round = 1;
  await mutating.admit?.(attributes);
  const rounds = [0, 1].map((round) => place.replace("round_0", `round_${round}`));
  assert.deepEqual(
    [[...annotations.keys()], [...contents.keys()]],
    [rounds.map((at) => `mutation.${at}`), rounds.map((at) => `patch.${at}`)],
  );
});

for (const path of ["/kind", "/apiVersion"]) {
  test(`a patch of ${path} is refused and changes nothing`, async (t) => {
    const { mutating } = await webhooksOf(t, { answer: () => patchOf({ op: "replace", path, value: "other" }) });
    const { attributes, object } = aWrite();
    const before = structuredClone(object);
    await assert.rejects(
      async () => mutating.admit?.(attributes),
      /"hook0.example.com" attempted to change the kind of the object$/,
    );
    assert.deepEqual(object, before);
  });
}

for (const { name, more } of [
  { name: "a built-in object", more: {} },
  {
    name: "a custom one",
    more: {
      kind: { group: "x.io", version: "v1", kind: "Thing" },
      resource: { group: "x.io", version: "v1", resource: "things" },
    },
  },
]) {
  test(`a patch that removes the metadata of ${name} leaves empty metadata`, async (t) => {
    const { mutating } = await webhooksOf(t, { answer: () => patchOf({ op: "remove", path: "/metadata" }) });
    const { attributes, object } = aWrite(more);
    await mutating.admit?.(attributes);
    assert.deepEqual(object.metadata, {});
  });
}

for (const { name, answer, want } of [
  { name: "that refuses", answer: () => ({ allowed: false }), want: /denied the request without explanation$/ },
  { name: "that breaks off", answer: () => undefined, want: /failed calling webhook "hook0.example.com"/ },
]) {
  test(`a mutating webhook ${name} leaves in the audit event that it has changed nothing`, async (t) => {
    const { mutating } = await webhooksOf(t, { answer });
    const { attributes, annotations } = aWrite();
    await assert.rejects(async () => mutating.admit?.(attributes), want);
    assert.deepEqual([...annotations], [[`mutation.${place}`, about(false)]]);
  });
}

test("of two webhooks of one name the one is called again that was called before the change", async (t) => {
  const name = "same.example.com";
  const { mutating, called } = await webhooksOf(
    t,
    { name, reinvocationPolicy: "IfNeeded" },
    { name, answer: () => patchOf({ op: "add", path: "/data/y", value: "2" }) },
  );
  const { attributes } = aWrite();
  await mutating.admit?.(attributes);
  attributes.round = 1;
  await mutating.admit?.(attributes);
  assert.deepEqual(called, [0, 1, 0]);
});

test("a webhook is called again for what a plugin has changed after it", async (t) => {
  const { mutating, called } = await webhooksOf(t, { reinvocationPolicy: "IfNeeded" }, { reinvocationPolicy: "Never" });
  const { attributes, object } = aWrite();
  await mutating.admit?.(attributes);
  object.data = { x: "changed" };
  attributes.round = 1;
  await mutating.admit?.(attributes);
  assert.deepEqual(called, [0, 1, 0]);
});

test("of several validating webhooks that refuse, the first in order has its say, whichever answers first", async (t) => {
  const second = Promise.withResolvers<void>();
  const refusing = (message: string) => ({ allowed: false, status: { message } });
  const { validating, counted } = await webhooksOf(
    t,
    { answer: () => second.promise.then(() => refusing("one")) },
    { answer: () => refusing("two") },
  );
  const { attributes } = aWrite();
  const answered = assert.rejects(async () => validating.validate?.(attributes), /"hook0.example.com" denied the request: one$/);
  await waitFor(() => counted.length === 2, { what: "the second one's refusal" });
  second.resolve();
  await answered;
  assert.deepEqual(counted, [
    "hook1.example.com validating CREATE 400 true",
    "hook1.example.com validating CREATE no_error 400",
    "hook0.example.com validating CREATE 400 true",
    "hook0.example.com validating CREATE no_error 400",
  ]);
});

test("a validating webhook that admits does not outvote the next one", async (t) => {
  const { validating } = await webhooksOf(t, { answer: () => ({ allowed: true }) }, { answer: () => ({ allowed: false }) });
  await assert.rejects(async () => validating.validate?.(aWrite().attributes), /"hook1.example.com" denied the request/);
});

test("a refusal has the webhook's reason and details, and its warnings and notes are passed on", async (t) => {
  const status = { code: 409, reason: "Conflict", message: "no", details: { name: "x", causes: [{ field: "data" }] } };
  const answer = () => ({ allowed: false, status, warnings: ["careful"], auditAnnotations: { why: "because" } });
  const { validating } = await webhooksOf(t, { answer });
  const { attributes, warnings, annotations } = aWrite();
  const refusal = await Promise.resolve(validating.validate?.(attributes)).then(
    () => undefined,
    (err: StatusError) => err.status,
  );
  const message = 'admission webhook "hook0.example.com" denied the request: no';
  assert.deepEqual(refusal, { ...status, metadata: {}, status: "Failure", message });
  assert.deepEqual([warnings, [...annotations]], [["careful"], [["hook0.example.com/why", "because"]]]);
});

test("a call is counted with its time in seconds, one that fails in this server as an internal error", async (t) => {
  const { mutating, counted, tookSeconds } = await webhooksOf(t, { answer: () => patchOf({ op: "remove", path: "/data" }) });
  const { attributes, took } = aWrite();
  await mutating.admit?.(attributes);
  const deletion = aWrite({ operation: "DELETE", object: undefined, oldObject: attributes.object });
  await assert.rejects(async () => mutating.admit?.(deletion.attributes), /attempted to modify the object/);
  assert.deepEqual(counted, [
    "hook0.example.com admit CREATE 200 false",
    "hook0.example.com admit DELETE 0 true",
    "hook0.example.com admit DELETE apiserver_internal_error 0",
  ]);
  assert.equal(tookSeconds.length, 2);
  assert.deepEqual(
    tookSeconds,
    [...took, ...deletion.took].map((ms) => ms / 1000),
  );
});

test("a webhook that selects namespaces refuses an object of a namespace that is gone", async (t) => {
  const { validating, called } = await webhooksOf(t, { namespaceSelector: { matchLabels: { a: "b" } } });
  const { attributes } = aWrite({ namespace: "gone" });
  await assert.rejects(async () => validating.validate?.(attributes), { code: 404, message: 'namespaces "gone" not found' });
  await validating.validate?.(aWrite().attributes);
  assert.deepEqual(called, []);
});

for (const missing of ["webhookconfigurations", "services", "namespaces"])
  for (const make of [mutatingAdmissionWebhook, validatingAdmissionWebhook]) {
    test(`${make.name} is not ready before it knows ${missing}`, () => {
      const isReady = (unsynced: string): boolean | undefined => {
        const informerOf = ({ resource }: { resource: string }) => ({
          ...{ synced: !resource.endsWith(unsynced), addHandler() {} },
          lister: { list: () => [], get: () => undefined },
        });
        const ctx = {
          informers: { for: informerOf },
          configurationOf: () => undefined,
          proxyCertificate: { current: undefined },
        };
        return make(ctx as unknown as PluginContext).ready?.();
      };
      assert.deepEqual([isReady(missing), isReady("none")], [false, true]);
    });
  }
