import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newEtcdClient } from "../../storage/etcd/client.ts";
import { type HookServer, patchOf, type ReviewRequest, startHookServer } from "../../testing/start-hook-server.ts";
import { startTestServer, type TestServer } from "../../testing/start-test-server.ts";

let server: TestServer;
let hooks: HookServer;
let answers: HookServer["answers"];
let requested: HookServer["requested"];

before(async () => {
  [server, hooks] = await Promise.all([startTestServer(undefined), startHookServer()]);
  ({ answers, requested } = hooks);
});
after(async () => {
  await server.stop();
  hooks.stop();
});
beforeEach(() => {
  requested.length = 0;
});

const configMaps = "/api/v1/namespaces/default/configmaps";
const rule = (changes: object = {}): object => ({
  operations: ["CREATE", "UPDATE"],
  apiGroups: [""],
  apiVersions: ["v1"],
  resources: ["configmaps"],
  ...changes,
});

async function register(
  kind: "Mutating" | "Validating",
  name: string,
  webhooks: object[],
  t: { after(fn: () => Promise<void>): void },
): Promise<void> {
  const path = `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}webhookconfigurations`;
  const full = webhooks.map((webhook, i) => ({
    name: `hook${i}.example.com`,
    clientConfig: { url: `${hooks.url}/${name}`, caBundle: hooks.caBundle },
    rules: [rule()],
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
    ...webhook,
  }));
  const { code, text } = await server.request("POST", path, { metadata: { name }, webhooks: full });
  assert.equal(code, 201, text);
  t.after(async () => void (await server.request("DELETE", `${path}/${name}`)));
  // Webhook configurations reach the server through its informer.
  await waitFor(async () => {
    await server.request("POST", `${configMaps}?dryRun=All`, { metadata: { generateName: "probe-" } });
    return requested.some((one) => one.path === `/${name}`);
  });
  requested.length = 0;
}

/** Writes to storage directly: served versions reject side effects other than None. */
async function storeSideEffects(kind: "Mutating" | "Validating", name: string, sideEffects: string): Promise<void> {
  const resource = `${kind.toLowerCase()}webhookconfigurations`;
  const { body } = await server.request("GET", `/apis/admissionregistration.k8s.io/v1/${resource}/${name}`);
  body.webhooks[0].sideEffects = sideEffects;
  delete body.metadata.resourceVersion;
  delete body.metadata.managedFields;
  const etcd = newEtcdClient({ servers: [server.etcdEndpoint] });
  try {
    await etcd.put(`${server.prefix}/${resource}/${name}`, Buffer.from(JSON.stringify(body)));
  } finally {
    etcd.close();
  }
}

test("a mutating webhook changes the object, the next one sees the change", async (t) => {
  answers.set("/a-first", () => patchOf([{ op: "add", path: "/data", value: { first: "1" } }]));
  answers.set("/b-second", ({ object }) =>
    object.data === undefined ? { allowed: true } : patchOf([{ op: "add", path: "/data/second", value: object.data.first }]),
  );
  await register("Mutating", "a-first", [{}], t);
  await register("Mutating", "b-second", [{}], t);
  const { code, body } = await server.request("POST", configMaps, { metadata: { name: "changed" } });
  assert.equal(code, 201);
  assert.deepEqual(body.data, { first: "1", second: "1" });
});

test("a webhook that asks for it is called again when a later one changed the object", async (t) => {
  answers.set("/c-counts", () => ({ allowed: true }));
  answers.set("/d-changes", () => patchOf([{ op: "add", path: "/data", value: { x: "y" } }]));
  await register("Mutating", "c-counts", [{ reinvocationPolicy: "IfNeeded" }], t);
  await register("Mutating", "d-changes", [{}], t);
  await server.request("POST", configMaps, { metadata: { name: "again" } });
  assert.deepEqual(
    requested.map(({ path }) => path),
    ["/c-counts", "/d-changes", "/c-counts"],
  );
});

test("a validating webhook refuses in its own words", async (t) => {
  answers.set("/refuses", ({ object }) =>
    object.metadata.name === "bad" ? { allowed: false, status: { code: 418, message: "not this one" } } : { allowed: true },
  );
  await register("Validating", "refuses", [{}], t);
  const { code, body } = await server.request("POST", configMaps, { metadata: { name: "bad" } });
  assert.equal(code, 418);
  assert.equal(body.message, 'admission webhook "hook0.example.com" denied the request: not this one');
  assert.equal((await server.request("POST", configMaps, { metadata: { name: "good" } })).code, 201);
});

test("failurePolicy Ignore does not ignore a webhook's refusal or missing support for dry run", async (t) => {
  answers.set("/strict", ({ object }) => ({ allowed: object.metadata.name !== "bad" }));
  await register("Validating", "strict", [{ failurePolicy: "Ignore" }], t);
  const { code, body } = await server.request("POST", configMaps, { metadata: { name: "bad" } });
  assert.deepEqual([code, body.message], [400, 'admission webhook "hook0.example.com" denied the request without explanation']);
  await storeSideEffects("Validating", "strict", "Some");
  const dryRun = () => server.request("POST", `${configMaps}?dryRun=All`, { metadata: { name: "dry-strict" } });
  await waitFor(async () => (await dryRun()).code === 400);
  assert.match((await dryRun()).body.message, /does not support dry run$/);
});

test("the review says who does what, with the old object", async (t) => {
  answers.set("/requested", () => ({ allowed: true }));
  await register("Validating", "requested", [{ rules: [rule({ operations: ["*"] })] }], t);
  await server.request("POST", configMaps, { metadata: { name: "seen" }, data: { a: "1" } });
  await server.request("PUT", `${configMaps}/seen`, { metadata: { name: "seen" }, data: { a: "2" } });
  await server.request("DELETE", `${configMaps}/seen`);
  const [create, update, remove] = requested.map(({ request }) => request);
  assert.partialDeepStrictEqual(create, {
    operation: "CREATE",
    name: "seen",
    namespace: "default",
    kind: { group: "", version: "v1", kind: "ConfigMap" },
    resource: { group: "", version: "v1", resource: "configmaps" },
    userInfo: { username: "admin", uid: "admin-uid" },
    object: { kind: "ConfigMap", apiVersion: "v1", data: { a: "1" } },
    oldObject: null,
    dryRun: false,
  });
  assert.equal(update.oldObject.data.a, "1");
  assert.equal(remove.operation, "DELETE");
  assert.equal(remove.object, null);
  assert.equal(remove.oldObject.data.a, "2");
});

test("a webhook that fails stops the write, unless it says that this does not matter", async (t) => {
  answers.set("/fails", ({ object }) => (object.metadata.name === "x" ? undefined : { allowed: true }));
  await register("Validating", "fails", [{ failurePolicy: "Fail" }], t);
  const { code, body } = await server.request("POST", configMaps, { metadata: { name: "x" } });
  assert.equal(code, 500);
  assert.match(body.message, /^Internal error occurred: failed calling webhook "hook0.example.com": failed to call webhook: /);
  const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/fails";
  await server.request("PATCH", path, [{ op: "replace", path: "/webhooks/0/failurePolicy", value: "Ignore" }], {
    "content-type": "application/json-patch+json",
  });
  await waitFor(async () => (await server.request("POST", `${configMaps}?dryRun=All`, { metadata: { name: "x" } })).code === 201);
});

for (const kind of ["Mutating", "Validating"] as const) {
  for (const { sideEffects, served } of [
    { sideEffects: "None", served: true },
    { sideEffects: "NoneOnDryRun", served: true },
    { sideEffects: "Some", served: false },
    { sideEffects: "Unknown", served: false },
  ]) {
    const expected = served ? "asks" : "fails at";
    test(`a dry run ${expected} a ${kind.toLowerCase()} webhook with sideEffects ${sideEffects}`, async (t) => {
      const name = `${kind.toLowerCase()}-${sideEffects.toLowerCase()}`;
      answers.set(`/${name}`, () => ({ allowed: true }));
      await register(kind, name, [{}], t);
      await storeSideEffects(kind, name, sideEffects);
      const dryRun = () => server.request("POST", `${configMaps}?dryRun=All`, { metadata: { name: "dry" } });
      await waitFor(async () => (await dryRun()).code === (served ? 201 : 400));
      requested.length = 0;
      const { code, body } = await dryRun();
      if (served) {
        assert.equal(code, 201);
        assert.equal(requested[0]?.request.dryRun, true);
      } else {
        assert.partialDeepStrictEqual(body, {
          reason: "BadRequest",
          message: 'admission webhook "hook0.example.com" does not support dry run',
        });
        assert.equal(requested.length, 0);
      }
      assert.equal((await server.request("POST", configMaps, { metadata: { generateName: "wet-" } })).code, 201);
      assert.equal(requested.at(-1)?.request.dryRun, false);
    });
  }
}

test("selectors and rules choose what it reviews", async (t) => {
  answers.set("/chosen", () => ({ allowed: true }));
  await register(
    "Validating",
    "chosen",
    [
      {},
      { name: "labelled.example.com", objectSelector: { matchLabels: { pick: "me" } } },
      { name: "elsewhere.example.com", namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "kube-system" } } },
    ],
    t,
  );
  await server.request("POST", configMaps, { metadata: { name: "plain" } });
  assert.equal(requested.length, 1);
  requested.length = 0;
  await server.request("POST", configMaps, { metadata: { name: "picked", labels: { pick: "me" } } });
  assert.equal(requested.length, 2);
  requested.length = 0;
  await server.request("POST", "/api/v1/namespaces/default/secrets", { metadata: { name: "other-resource" } });
  assert.equal(requested.length, 0);
});

test("a webhook for another version of the resource gets the object in that version", async (t) => {
  answers.set("/versioned", () => ({ allowed: true }));
  await register(
    "Validating",
    "versioned",
    [
      {},
      {
        name: "hpa.example.com",
        rules: [rule({ apiGroups: ["autoscaling"], apiVersions: ["v1"], resources: ["horizontalpodautoscalers"] })],
      },
    ],
    t,
  );
  const hpa = {
    metadata: { name: "h" },
    spec: {
      scaleTargetRef: { kind: "Deployment", name: "d", apiVersion: "apps/v1" },
      maxReplicas: 3,
      metrics: [{ type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } } }],
    },
  };
  const { code, text } = await server.request("POST", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", hpa);
  assert.equal(code, 201, text);
  const { request } = requested[0] as { request: ReviewRequest };
  assert.equal(request.object.apiVersion, "autoscaling/v1");
  assert.equal(request.object.spec.targetCPUUtilizationPercentage, 50);
  assert.deepEqual(request.requestKind, { group: "autoscaling", version: "v2", kind: "HorizontalPodAutoscaler" });
});

test("the second validating webhook refuses what the first lets through, and both are called", async (t) => {
  answers.set("/two", () => ({ allowed: true }));
  answers.set("/no", ({ object }) => ({ allowed: !String(object?.metadata.name).startsWith("no-") }));
  await register("Validating", "two", [{}, { clientConfig: { url: `${hooks.url}/no`, caBundle: hooks.caBundle } }], t);
  const { code, body } = await server.request("POST", configMaps, { metadata: { name: "no-second" } });
  assert.equal(code, 400);
  assert.match(body.message, /admission webhook "hook1.example.com" denied the request/);
  assert.deepEqual(requested.map(({ path }) => path).sort(), ["/no", "/two"]);
  assert.equal((await server.request("GET", `${configMaps}/no-second`)).code, 404);
});

test("a webhook changes updates, patches and applies too, and its change is what is validated", async (t) => {
  answers.set("/stamps", ({ operation }) =>
    operation === "DELETE" ? { allowed: true } : patchOf([{ op: "add", path: "/metadata/labels", value: { by: operation } }]),
  );
  await register("Mutating", "stamps", [{}], t);
  const path = `${configMaps}/stamped`;
  const labels = async () => (await server.request("GET", path)).body.metadata.labels;
  await server.request("POST", configMaps, { metadata: { name: "stamped" } });
  assert.deepEqual(await labels(), { by: "CREATE" });
  await server.request("PUT", path, { metadata: { name: "stamped" }, data: { a: "1" } });
  assert.deepEqual(await labels(), { by: "UPDATE" });
  const merge = { "content-type": "application/merge-patch+json" };
  await server.request("PATCH", path, { metadata: { labels: { by: "me" } } }, merge);
  assert.deepEqual(await labels(), { by: "UPDATE" });
  answers.set("/stamps", () => patchOf([{ op: "add", path: "/metadata/labels", value: { by: "not valid!" } }]));
  assert.equal((await server.request("PATCH", path, { data: { a: "2" } }, merge)).code, 422);
  assert.deepEqual(await labels(), { by: "UPDATE" });
});

test("a webhook of deletions may refuse them, of a collection too, and is shown what the dry run is", async (t) => {
  answers.set("/keeps", ({ operation, oldObject }) => ({
    allowed: operation !== "DELETE" || oldObject.data?.keep === undefined,
  }));
  await register("Validating", "keeps", [{ rules: [rule({ operations: ["CREATE", "DELETE"] })] }], t);
  await server.request("POST", configMaps, { metadata: { name: "keep-me", labels: { set: "k" } }, data: { keep: "1" } });
  requested.length = 0;
  for (const path of [`${configMaps}/keep-me`, `${configMaps}/keep-me?dryRun=All`, `${configMaps}?labelSelector=set%3Dk`]) {
    assert.equal((await server.request("DELETE", path)).code, 400, path);
  }
  assert.deepEqual(
    requested.map(({ request }) => request.dryRun),
    [false, true, false],
  );
  assert.equal((await server.request("GET", `${configMaps}/keep-me`)).code, 200);
});

test("a configuration that is changed, deleted and created again applies in its present state", async (t) => {
  answers.set("/renewed", () => ({ allowed: true }));
  answers.set("/renewed-no", ({ object }) => ({ allowed: object?.metadata.name !== "victim" }));
  await register("Validating", "renewed", [{}], t);
  const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/renewed";
  const victim = () => server.request("POST", `${configMaps}?dryRun=All`, { metadata: { name: "victim" } });
  assert.equal((await victim()).code, 201);
  const { body } = await server.request("GET", path);
  const url = [{ op: "replace", path: "/webhooks/0/clientConfig/url", value: `${hooks.url}/renewed-no` }];
  await server.request("PATCH", path, url, { "content-type": "application/json-patch+json" });
  await waitFor(async () => (await victim()).code === 400);
  await server.request("DELETE", path);
  await waitFor(async () => (await victim()).code === 201);
  body.webhooks[0].clientConfig.url = `${hooks.url}/renewed-no`;
  await server.request("POST", path.slice(0, -"/renewed".length), { metadata: { name: "renewed" }, webhooks: body.webhooks });
  await waitFor(async () => (await victim()).code === 400);
});
