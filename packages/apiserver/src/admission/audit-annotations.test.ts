/** Audit annotations set by admission and authorization, read from a real audit log. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type HookServer, patchOf, startHookServer } from "../testing/start-hook-server.ts";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const folder = mkdtempSync(join(tmpdir(), "cox-annotations-"));
const log = join(folder, "audit.log");
let server: TestServer;
let hooks: HookServer;

before(async () => {
  const policy = join(folder, "policy.yaml");
  const rules = `- level: RequestResponse
  resources: [{group: "", resources: [configmaps]}]
- level: RequestResponse
  namespaces: [limited]
- level: Metadata
`;
  writeFileSync(policy, `apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n${rules}`);
  [server, hooks] = await Promise.all([
    startTestServer(undefined, [`--audit-policy-file=${policy}`, `--audit-log-path=${log}`]),
    startHookServer(),
  ]);
});
after(async () => {
  await server.stop();
  hooks.stop();
  rmSync(folder, { recursive: true });
});

interface Audited {
  readonly annotations: Record<string, string>;
  readonly requestObject?: Pod;
  readonly responseObject?: Pod;
}

/** Sends a request. @returns its audit event */
async function eventOf(...call: Parameters<TestServer["request"]>): Promise<Audited> {
  const { headers } = await server.request(...call);
  const lines = readFileSync(log, "utf8").split("\n");
  const event = lines.find((line) => line.includes(String(headers["audit-id"])));
  assert.ok(event !== undefined, "the request is in the log");
  return JSON.parse(event);
}
const annotationsOf = async (...call: Parameters<TestServer["request"]>) => (await eventOf(...call)).annotations;

const administrator = {
  "authorization.k8s.io/decision": "allow",
  "authorization.k8s.io/reason": "",
};
const aPod = (name: string, spec: object = {}): object => ({
  metadata: { name },
  spec: { containers: [{ name: "c", image: "busybox", ...spec }] },
});

test("the decision and its reason: by role, and by none", async () => {
  const subject = { apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "jane" };
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" };
  const bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
  await server.request("POST", bindings, { metadata: { name: "jane-rules" }, roleRef, subjects: [subject] });
  const jane = { authorization: "Bearer user-token" };
  const path = "/api/v1/namespaces/default/configmaps";
  await waitFor(async () => (await server.request("GET", path, undefined, jane)).code === 200);
  assert.deepEqual(await annotationsOf("GET", path, undefined, jane), {
    "authorization.k8s.io/decision": "allow",
    "authorization.k8s.io/reason":
      'RBAC: allowed by RoleBinding "jane-rules/default" of ClusterRole "cluster-admin" to User "jane"',
  });
  assert.deepEqual(await annotationsOf("GET", "/api/v1/nodes", undefined, jane), {
    "authorization.k8s.io/decision": "forbid",
    "authorization.k8s.io/reason": "",
  });
  assert.deepEqual(await annotationsOf("GET", "/api/v1/nodes"), administrator);
});

test("pod security: the policy that was enforced, and what the audited one would refuse", async () => {
  const standard = (mode: string): string => `pod-security.kubernetes.io/${mode}`;
  const labels = { [standard("enforce")]: "baseline", [standard("enforce-version")]: "v1.23", [standard("audit")]: "restricted" };
  await server.request("POST", "/api/v1/namespaces", { metadata: { name: "secure", labels } });
  await server.request("POST", "/api/v1/namespaces/secure/serviceaccounts", { metadata: { name: "default" } });
  const pods = "/api/v1/namespaces/secure/pods";
  await waitFor(async () => (await server.request("POST", `${pods}?dryRun=All`, aPod("probe"))).code === 201);
  const privileged = aPod("mighty", { securityContext: { privileged: true } });
  for (const { pod, code } of [
    { pod: aPod("plain"), code: 201 },
    { pod: privileged, code: 403 },
  ]) {
    assert.equal((await server.request("POST", `${pods}?dryRun=All`, pod)).code, code);
    const annotations = await annotationsOf("POST", `${pods}?dryRun=All`, pod);
    const violations = annotations[standard("audit-violations")] ?? "";
    assert.deepEqual(annotations, {
      ...administrator,
      [standard("enforce-policy")]: "baseline:v1.23",
      [standard("audit-violations")]: violations,
    });
    assert.match(violations, /^would violate PodSecurity "restricted:latest": .*allowPrivilegeEscalation != false/);
  }
});

test("limits: the request is audited as it was sent, the answer with what was filled in and the pod's word about it", async () => {
  await server.request("POST", "/api/v1/namespaces", { metadata: { name: "limited" } });
  await server.request("POST", "/api/v1/namespaces/limited/serviceaccounts", { metadata: { name: "default" } });
  const limits = [{ type: "Container", default: { cpu: "1" }, defaultRequest: { cpu: "500m" } }];
  await server.request("POST", "/api/v1/namespaces/limited/limitranges", { metadata: { name: "l" }, spec: { limits } });
  const { requestObject, responseObject, annotations } = await eventOf("POST", "/api/v1/namespaces/limited/pods", aPod("p"));
  assert.deepEqual(requestObject?.spec?.containers[0]?.resources, {});
  assert.equal(requestObject?.metadata?.annotations, undefined);
  assert.deepEqual(responseObject?.spec?.containers[0]?.resources, { limits: { cpu: "1" }, requests: { cpu: "500m" } });
  assert.deepEqual(responseObject?.metadata?.annotations, {
    "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request for container c; cpu limit for container c",
  });
  assert.deepEqual(annotations, { ...administrator, "pod-security.kubernetes.io/enforce-policy": "privileged:latest" });
});

test("mutating webhooks: each in its place and round, its patch, its own notes, and that a failed one was passed over", async () => {
  hooks.answers.set("/first", () => ({
    ...patchOf([{ op: "add", path: "/data", value: { a: "1" } }]),
    auditAnnotations: { why: "it is new" },
  }));
  hooks.answers.set("/second", () => ({ allowed: true }));
  const webhook = (name: string, more: object = {}): object => ({
    name: `${name}.example.com`,
    clientConfig: { url: `${hooks.url}/${name}`, caBundle: hooks.caBundle },
    rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"] }],
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
    ...more,
  });
  const configurations = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
  const webhooks = [
    webhook("first"),
    webhook("second", { reinvocationPolicy: "IfNeeded" }),
    webhook("third", { failurePolicy: "Ignore" }),
  ];
  assert.equal((await server.request("POST", configurations, { metadata: { name: "three" }, webhooks })).code, 201);
  const path = "/api/v1/namespaces/default/configmaps?dryRun=All";
  await waitFor(async () => (await server.request("POST", path, { metadata: { name: "probe" } })).body.data !== undefined);
  const what = (name: string, mutated: boolean): string =>
    JSON.stringify({ configuration: "three", webhook: `${name}.example.com`, mutated });
  const place = (kind: string, index: number): string => `${kind}.webhook.admission.k8s.io/round_0_index_${index}`;
  assert.deepEqual(await annotationsOf("POST", path, { metadata: { name: "noted" } }), {
    ...administrator,
    [place("mutation", 0)]: what("first", true),
    [place("mutation", 1)]: what("second", false),
    [place("mutation", 2)]: what("third", false),
    [place("patch", 0)]: JSON.stringify({
      configuration: "three",
      webhook: "first.example.com",
      patch: [{ op: "add", path: "/data", value: { a: "1" } }],
      patchType: "JSONPatch",
    }),
    [`failed-open.mutation.webhook.admission.k8s.io/round_0_index_2`]: "third.example.com",
    "first.example.com/why": "it is new",
  });
});
