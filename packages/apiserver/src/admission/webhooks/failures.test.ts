/** Webhook failures, endpoints, client credentials, and the resulting metrics and events. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, type TestContext, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type HookServer, patchOf, startHookServer } from "../../testing/start-hook-server.ts";
import { startTestServer, type TestServer } from "../../testing/start-test-server.ts";

let server: TestServer;
let hooks: HookServer;
let directory: string;

before(async () => {
  directory = mkdtempSync(join(tmpdir(), "cox-webhooks-"));
  const file = (name: string, content: object): string => {
    writeFileSync(join(directory, name), JSON.stringify(content));
    return join(directory, name);
  };
  const users = [
    { name: "hooks.default.svc", user: { token: "for-the-service" } },
    { name: "127.0.0.1:*", user: { token: "never" } },
    { name: "*", user: { username: "me", password: "secret" } },
  ];
  const kubeConfigFile = file("webhooks.kubeconfig", { apiVersion: "v1", kind: "Config", users });
  const configuration = { apiVersion: "apiserver.config.k8s.io/v1", kind: "WebhookAdmissionConfiguration", kubeConfigFile };
  const plugins = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"].map((name) => ({ name, configuration }));
  const admission = file("admission.json", {
    apiVersion: "apiserver.config.k8s.io/v1",
    kind: "AdmissionConfiguration",
    plugins,
  });
  const policy = file("audit.json", { apiVersion: "audit.k8s.io/v1", kind: "Policy", rules: [{ level: "Request" }] });
  [server, hooks] = await Promise.all([
    startTestServer(undefined, [
      `--admission-control-config-file=${admission}`,
      `--audit-policy-file=${policy}`,
      `--audit-log-path=${join(directory, "audit.log")}`,
    ]),
    startHookServer(["hooks.default.svc"]),
  ]);
});
after(async () => {
  await server.stop();
  hooks.stop();
  rmSync(directory, { recursive: true, force: true });
});
beforeEach(() => {
  hooks.requested.length = 0;
});

const configMaps = "/api/v1/namespaces/default/configmaps";
const rule = { operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"] };

/** Matches only objects with the label `hook: <name>`, to isolate the tests. */
async function register(t: TestContext, kind: "mutating" | "validating", name: string, changes: object = {}): Promise<void> {
  const path = `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations`;
  const webhook = {
    name: `${name}.example.com`,
    clientConfig: { url: `${hooks.url}/${name}`, caBundle: hooks.caBundle },
    rules: [rule],
    objectSelector: { matchLabels: { hook: name } },
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
    ...changes,
  };
  const watched = {
    ...webhook,
    name: `probe-${name}.example.com`,
    clientConfig: { url: `${hooks.url}/probe`, caBundle: hooks.caBundle },
    rules: [rule],
    objectSelector: { matchLabels: { probe: name } },
    failurePolicy: "Ignore",
  };
  const { code, text } = await server.request("POST", path, { metadata: { name }, webhooks: [webhook, watched] });
  assert.equal(code, 201, text);
  t.after(async () => void (await server.request("DELETE", `${path}/${name}`)));
  hooks.answers.set("/probe", () => ({ allowed: true }));
  await waitFor(async () => {
    await server.request("POST", `${configMaps}?dryRun=All`, { metadata: { name: "probe", labels: { probe: name } } });
    return hooks.requested.some(({ path: requested }) => requested === "/probe");
  });
  hooks.requested.length = 0;
}
const create = (hook: string, more: object = {}) =>
  server.request("POST", configMaps, { metadata: { generateName: `${hook}-`, labels: { hook } }, ...more });

const json = (response: import("node:http").ServerResponse, code: number, body: object): void =>
  void response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));
const review = (request: { uid: string }, response: object, more: object = {}): object => ({
  kind: "AdmissionReview",
  apiVersion: "admission.k8s.io/v1",
  response: { uid: request.uid, allowed: true, ...response },
  ...more,
});

const calling = (name: string): string => `Internal error occurred: failed calling webhook "${name}.example.com": `;
for (const { name, kind = "validating", answer, want } of [
  {
    name: "redirects",
    answer: (response) => void response.writeHead(302, { location: `${hooks.url}/elsewhere` }).end(),
    want: /failed to call webhook: the server responded with the status code 302 but did not return more information$/,
  },
  {
    name: "hangs-up",
    answer: (response) => void response.destroy(),
    want: /failed to call webhook: Post "https:.*\?timeout=10s": EOF$/,
  },
  {
    name: "switches",
    answer: (response) =>
      void response.socket?.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
    want: /failed to call webhook: Post "https:.*": backend tried to switch protocol "x" when "" was requested$/,
  },
  {
    name: "breaks",
    answer: (response) => void response.writeHead(500).end("panic"),
    want: /failed to call webhook: an error on the server \("panic"\) has prevented the request from succeeding$/,
  },
  {
    name: "refuses-us",
    answer: (response) =>
      json(response, 403, { kind: "Status", apiVersion: "v1", status: "Failure", message: "go away", code: 403 }),
    want: /failed to call webhook: go away$/,
  },
  { name: "babbles", answer: (response) => void response.end("not json"), want: /received invalid webhook response: / },
  {
    name: "says-nothing",
    answer: (response) => json(response, 200, { kind: "AdmissionReview" }),
    want: /webhook response was absent$/,
  },
  {
    name: "answers-another",
    answer: (response) => json(response, 200, review({ uid: "x" }, {})),
    want: /received invalid webhook response: expected response.uid="[-0-9a-f]{36}", got "x"$/,
  },
  {
    name: "other-version",
    answer: (response, request) => json(response, 200, review(request, {}, { apiVersion: "admission.k8s.io/v1beta1" })),
    want: /expected webhook response of admission.k8s.io\/v1, Kind=AdmissionReview, got admission.k8s.io\/v1beta1, Kind=AdmissionReview$/,
  },
  {
    name: "patches-unasked",
    answer: (response, request) => json(response, 200, review(request, patchOf([]))),
    want: /validating webhook may not return response.patch$/,
  },
  {
    name: "patch-without-type",
    kind: "mutating",
    answer: (response, request) => json(response, 200, review(request, { ...patchOf([]), patchType: undefined })),
    want: /webhook returned response.patch but not response.patchType$/,
  },
  {
    name: "patch-of-another-type",
    kind: "mutating",
    answer: (response, request) =>
      json(response, 200, review(request, { ...patchOf([{ op: "add", path: "/data", value: {} }]), patchType: "Merge" })),
    want: /unsupported patch type "Merge"$/,
  },
  {
    name: "unreadable-patch",
    kind: "mutating",
    answer: (response, request) =>
      json(response, 200, review(request, { patchType: "JSONPatch", patch: Buffer.from("{").toString("base64") })),
    want: /received undecodable patch in webhook response: /,
  },
  {
    name: "patch-that-is-no-list",
    kind: "mutating",
    answer: (response, request) =>
      json(response, 200, review(request, { patchType: "JSONPatch", patch: Buffer.from("{}").toString("base64") })),
    want: /received undecodable patch in webhook response: not a list of operations$/,
  },
] as {
  name: string;
  kind?: "mutating" | "validating";
  answer: NonNullable<ReturnType<HookServer["raw"]["get"]>>;
  want: RegExp;
}[]) {
  test(`a webhook that fails (${name}) stops the write and is named, or is passed over where that is its policy`, async (t) => {
    hooks.raw.set(`/${name}`, answer);
    hooks.raw.set(`/ignored-${name}`, answer);
    await register(t, kind, name);
    const { code, body } = await create(name);
    assert.equal(code, 500, JSON.stringify(body));
    assert.ok(body.message.startsWith(calling(name)), body.message);
    assert.match(body.message, want);
    await register(t, kind, `ignored-${name}`, { failurePolicy: "Ignore" });
    assert.equal((await create(`ignored-${name}`)).code, 201);
    assert.ok(!hooks.requested.some(({ path }) => path === "/elsewhere"));
  });
}

test("a call of a webhook ends at its timeout", async (t) => {
  hooks.raw.set("/slow", () => {});
  await register(t, "validating", "slow", { timeoutSeconds: 1 });
  const { code, body } = await create("slow");
  assert.equal(code, 500);
  assert.equal(
    body.message,
    `${calling("slow")}failed to call webhook: Post "${hooks.url}/slow?timeout=1s": context deadline exceeded`,
  );
});

test("a webhook that refuses connections, or whose certificate has an unknown issuer, is a failure", async (t) => {
  await register(t, "validating", "dead", { clientConfig: { url: "https://127.0.0.1:1/dead", caBundle: hooks.caBundle } });
  const dead = await create("dead");
  assert.equal(
    dead.body.message,
    `${calling("dead")}failed to call webhook: Post "https://127.0.0.1:1/dead?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused`,
  );
  await register(t, "validating", "stranger", { clientConfig: { url: `${hooks.url}/stranger` } });
  assert.match((await create("stranger")).body.message, /x509: certificate signed by unknown authority$/);
  const { text } = await server.request("GET", "/metrics");
  assert.match(
    text,
    /apiserver_admission_webhook_rejection_count\{name="dead.example.com",type="validating",operation="CREATE",error_type="calling_webhook_error",rejection_code="503"\} 1/,
  );
  assert.match(
    text,
    /apiserver_admission_webhook_request_total\{name="dead.example.com",type="validating",operation="CREATE",code="503",rejected="true"\} 1/,
  );
  assert.match(
    text,
    /apiserver_admission_webhook_admission_duration_seconds_count\{name="dead.example.com",type="validating",operation="CREATE",rejected="true"\} 1/,
  );
});

test("a patch cannot change an object's kind, and patching a missing object is refused", async (t) => {
  await register(t, "mutating", "rekinds");
  for (const [path, value] of [
    ["/kind", "Secret"],
    ["/apiVersion", "v2"],
  ]) {
    hooks.answers.set("/rekinds", () => patchOf([{ op: "replace", path, value }]));
    const { code, body } = await create("rekinds");
    assert.equal(code, 500);
    assert.equal(
      body.message,
      'Internal error occurred: admission webhook "rekinds.example.com" attempted to change the kind of the object',
    );
  }
  hooks.answers.set("/absent", () => patchOf([{ op: "remove", path: "/data/x" }]));
  await register(t, "mutating", "absent");
  assert.match((await create("absent")).body.message, /^Internal error occurred: /);
});

test("a deletion has nothing to patch, and what was there is not touched", async (t) => {
  hooks.answers.set("/on-delete", ({ operation }) =>
    operation === "DELETE" ? patchOf([{ op: "add", path: "/data", value: {} }]) : { allowed: true },
  );
  await register(t, "mutating", "on-delete", { rules: [{ ...rule, operations: ["*"] }] });
  const { body: made } = await create("on-delete", { data: { a: "1" } });
  const path = `${configMaps}/${made.metadata.name}`;
  const { code, body } = await server.request("DELETE", path);
  assert.equal(code, 500);
  assert.match(body.message, /attempted to modify the object, which is not supported for this operation$/);
  assert.deepEqual((await server.request("GET", path)).body.data, { a: "1" });
});

test("a webhook of a service is dialled there and must show the service's name", async (t) => {
  const path = "/api/v1/namespaces/default/services";
  for (const name of ["hooks", "others"]) {
    const spec = { type: "ExternalName", externalName: "localhost" };
    const { code, text } = await server.request("POST", path, { metadata: { name }, spec });
    assert.equal(code, 201, text);
  }
  const at = (name: string) => ({
    clientConfig: { service: { namespace: "default", name, path: "/by-service", port: hooks.port }, caBundle: hooks.caBundle },
  });
  hooks.answers.set("/by-service", () => ({ allowed: true }));
  await register(t, "validating", "hooks", at("hooks"));
  const answer = await create("hooks");
  assert.equal(answer.code, 201, answer.text);
  await register(t, "validating", "others", at("others"));
  assert.match(
    (await create("others")).body.message,
    /x509: certificate is valid for localhost, hooks.default.svc, not others.default.svc$/,
  );
  await register(t, "validating", "missing", at("missing"));
  assert.equal(
    (await create("missing")).body.message,
    `${calling("missing")}failed to call webhook: Post "https://missing.default.svc:${hooks.port}/by-service?timeout=10s": service "missing" not found`,
  );
});

test("the configured credentials go to the servers they are for", async (t) => {
  hooks.answers.set("/whoami", () => ({ allowed: true }));
  await register(t, "validating", "whoami");
  await create("whoami");
  assert.equal(hooks.requested[0]?.headers.authorization, `Basic ${Buffer.from("me:secret").toString("base64")}`);
});

test("v1beta1 reviews, warnings and audit annotations", async (t) => {
  hooks.answers.set("/old", () => ({ ...patchOf([{ op: "add", path: "/data", value: { x: "y" } }]), patchType: undefined }));
  await register(t, "mutating", "old", { admissionReviewVersions: ["v2", "v1beta1", "v1"] });
  assert.deepEqual((await create("old")).body.data, { x: "y" });
  assert.equal(hooks.requested[0]?.version, "admission.k8s.io/v1beta1");

  hooks.answers.set("/warns", () => ({
    allowed: true,
    warnings: ["mind the gap"],
    auditAnnotations: { why: "because", "not a key!": "x" },
  }));
  await register(t, "validating", "warns");
  const { headers } = await create("warns");
  assert.equal(headers["warning"], '299 - "mind the gap"');

  const annotationsOf = (label: string): Record<string, string> | undefined => {
    const lines = readFileSync(join(directory, "audit.log"), "utf8").trim().split("\n");
    const events = lines.map((line) => JSON.parse(line));
    const own = (event: { requestObject?: { metadata?: { labels?: { hook?: string } } } }) =>
      event.requestObject?.metadata?.labels?.hook === label;
    return events.findLast((event) => own(event) && event.stage === "ResponseComplete")?.annotations;
  };
  const warned = await waitFor(async () => annotationsOf("warns"));
  assert.equal(warned["warns.example.com/why"], "because");
  assert.ok(!("warns.example.com/not a key!" in warned));
  const mutated = await waitFor(async () => annotationsOf("old"));
  assert.deepEqual(JSON.parse(mutated["mutation.webhook.admission.k8s.io/round_0_index_0"] as string), {
    configuration: "old",
    webhook: "old.example.com",
    mutated: true,
  });
  assert.deepEqual(JSON.parse(mutated["patch.webhook.admission.k8s.io/round_0_index_0"] as string), {
    configuration: "old",
    webhook: "old.example.com",
    patch: [{ op: "add", path: "/data", value: { x: "y" } }],
    patchType: "JSONPatch",
  });
});

test("a container that a webhook adds is seen by built-in plugins, and by webhooks with reinvocationPolicy IfNeeded", async (t) => {
  const containers = { op: "add", path: "/spec/containers/-", value: { name: "sidecar", image: "busybox" } };
  hooks.answers.set("/a-asks-again", () => ({ allowed: true }));
  hooks.answers.set("/b-injects", ({ object }) =>
    object.spec.containers.length > 1 ? { allowed: true } : patchOf([containers]),
  );
  const pods = { rules: [{ ...rule, resources: ["pods"] }] };
  await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
  for (const [name, more] of [
    ["a-asks-again", { reinvocationPolicy: "IfNeeded" }],
    ["b-injects", {}],
  ] as const) {
    await register(t, "mutating", name, { ...pods, ...more, objectSelector: { matchLabels: { hook: "inject" } } }).catch(
      () => {},
    );
  }
  const pod = { metadata: { name: "injected", labels: { hook: "inject" } }, spec: { containers: [{ name: "c", image: "i" }] } };
  await waitFor(async () => {
    const { body } = await server.request("POST", "/api/v1/namespaces/default/pods?dryRun=All", pod);
    return body.spec?.containers?.length === 2;
  });
  hooks.requested.length = 0;
  const { body } = await server.request("POST", "/api/v1/namespaces/default/pods", pod);
  assert.deepEqual(
    hooks.requested.map(({ path }) => path),
    ["/a-asks-again", "/b-injects", "/a-asks-again"],
  );
  // The ServiceAccount plugin is reinvoked, so that the injected container has the token mount too.
  const mounts = body.spec.containers.map(
    ({ volumeMounts }: { volumeMounts: { mountPath: string }[] }) => volumeMounts?.[0]?.mountPath,
  );
  const tokens = "/var/run/secrets/kubernetes.io/serviceaccount";
  assert.deepEqual(mounts, [tokens, tokens]);
});

test("subresources are shown in their own kind, and the same write is reviewed in whatever version it comes", async (t) => {
  hooks.answers.set("/subs", () => ({ allowed: true }));
  const rules = [
    { operations: ["*"], apiGroups: ["apps"], apiVersions: ["v1"], resources: ["deployments/scale", "deployments/status"] },
  ];
  await register(t, "validating", "subs", { rules, objectSelector: {} });
  const path = "/apis/apps/v1/namespaces/default/deployments";
  const template = { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } };
  await server.request("POST", path, {
    metadata: { name: "d" },
    spec: { replicas: 1, selector: { matchLabels: { a: "b" } }, template },
  });
  const patch = { "content-type": "application/merge-patch+json" };
  await waitFor(async () => {
    await server.request("PATCH", `${path}/d/scale?dryRun=All`, { spec: { replicas: 2 } }, patch);
    return hooks.requested.length > 0;
  });
  hooks.requested.length = 0;
  await server.request("PATCH", `${path}/d/scale`, { spec: { replicas: 3 } }, patch);
  await server.request("PATCH", `${path}/d/status`, { status: { observedGeneration: 1 } }, patch);
  const [scale, status] = hooks.requested.map(({ request }) => request);
  assert.partialDeepStrictEqual(scale, {
    kind: { group: "autoscaling", version: "v1", kind: "Scale" },
    resource: { group: "apps", version: "v1", resource: "deployments" },
    subResource: "scale",
    operation: "UPDATE",
    object: { kind: "Scale", spec: { replicas: 3 } },
    oldObject: { kind: "Scale", spec: { replicas: 1 } },
    options: { kind: "UpdateOptions", apiVersion: "meta.k8s.io/v1" },
  });
  assert.partialDeepStrictEqual(status, {
    kind: { group: "apps", version: "v1", kind: "Deployment" },
    subResource: "status",
    object: { kind: "Deployment", apiVersion: "apps/v1", status: { observedGeneration: 1 } },
  });
});

test("webhooks are not called for webhook configurations", async (t) => {
  hooks.answers.set("/self", () => ({ allowed: false }));
  const rules = [{ operations: ["*"], apiGroups: ["admissionregistration.k8s.io"], apiVersions: ["*"], resources: ["*"] }];
  await register(t, "validating", "self", { rules, objectSelector: {} });
  const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  assert.equal((await server.request("POST", path, { metadata: { name: "another" } })).code, 201);
  assert.equal((await server.request("DELETE", `${path}/another`)).code, 200);
  assert.equal(hooks.requested.filter(({ path: requested }) => requested === "/self").length, 0);
});
