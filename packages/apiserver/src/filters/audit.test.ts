import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { roles } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

// biome-ignore lint/suspicious/noExplicitAny: events hold objects of every kind.
type Event = any;

const folder = mkdtempSync(join(tmpdir(), "cox-audit-"));
const file = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const policy = file(
  "policy.yaml",
  `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
  nonResourceURLs: ["/healthz*", "/readyz*", "/metrics"]
- level: Metadata
  resources: [{group: "", resources: ["secrets"]}]
- level: RequestResponse
  omitManagedFields: true
  omitStages: [RequestReceived]
  resources: [{group: "", resources: ["configmaps"]}]
- level: Request
  verbs: [delete]
- level: Metadata
`,
);
const logFile = join(folder, "logs", "audit.log");
/** Requests to the webhook: the path, and the events of each list. */
const lists: { path: string; items: Event[] }[] = [];
let failures = 2;
let peer: Server;
let server: TestServer;

before(async () => {
  const ca = await newCa({ commonName: "audit" });
  const pair = await newCertificate({ commonName: "peer", ips: ["127.0.0.1"], usages: ["server"], ca });
  peer = createServer({ cert: pair.certPem, key: pair.keyPem }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.once("end", () => {
      if (failures > 0) {
        failures--;
        return void response.writeHead(503).end("not yet");
      }
      assert.equal(request.headers.authorization, "Bearer audit-token");
      const list = JSON.parse(Buffer.concat(chunks).toString("utf8"));
      assert.partialDeepStrictEqual(list, { kind: "EventList", apiVersion: "audit.k8s.io/v1", metadata: {} });
      lists.push({ path: request.url ?? "", items: list.items });
      response.end("{}");
    });
  });
  await new Promise<void>((resolve) => peer.listen(0, "127.0.0.1", resolve));
  const kubeconfig = file(
    "webhook.kubeconfig",
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "c",
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      clusters: [
        {
          name: "c",
          cluster: {
            server: `https://127.0.0.1:${(peer.address() as AddressInfo).port}/events`,
            "certificate-authority-data": Buffer.from(ca.certPem).toString("base64"),
          },
        },
      ],
      users: [{ name: "u", user: { token: "audit-token" } }],
    }),
  );
  server = await startTestServer(undefined, [
    `--audit-policy-file=${policy}`,
    `--audit-log-path=${logFile}`,
    `--audit-webhook-config-file=${kubeconfig}`,
    "--audit-webhook-batch-max-wait=100ms",
    "--audit-webhook-initial-backoff=20ms",
    "--audit-webhook-batch-throttle-qps=1000",
  ]);
});
after(async () => {
  await server.stop();
  peer.closeAllConnections();
  peer.close();
  rmSync(folder, { recursive: true });
});

/** The logged events of one request. No polling: a blocking log writes them before the response ends. */
function logged(auditID?: unknown): Event[] {
  const lines = readFileSync(logFile, "utf8").trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line)).filter((event) => auditID === undefined || event.auditID === auditID);
}

const configMaps = "/api/v1/namespaces/default/configmaps";

test("a read at Metadata leaves two events, without objects, with who, what and why", async () => {
  const { headers } = await server.request("GET", "/api/v1/namespaces/default/secrets/none?pretty=0", undefined, {
    "user-agent": "t<1>",
    "x-forwarded-for": "192.0.2.7, bogus, 2001:DB8:0::1",
    "x-real-ip": "192.0.2.7",
  });
  const [received, complete, ...more] = logged(headers["audit-id"]);
  assert.equal(more.length, 0);
  assert.deepEqual(Object.keys(complete), [
    "kind",
    "apiVersion",
    "level",
    "auditID",
    "stage",
    "requestURI",
    "verb",
    "user",
    "sourceIPs",
    "userAgent",
    "objectRef",
    "responseStatus",
    "requestReceivedTimestamp",
    "stageTimestamp",
    "annotations",
  ]);
  assert.partialDeepStrictEqual(received, { kind: "Event", apiVersion: "audit.k8s.io/v1", stage: "RequestReceived" });
  assert.equal(received.stageTimestamp, received.requestReceivedTimestamp);
  assert.match(received.stageTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  assert.equal(received.responseStatus, undefined);
  hasFields(complete, {
    level: "Metadata",
    stage: "ResponseComplete",
    requestURI: "/api/v1/namespaces/default/secrets/none?pretty=0",
    verb: "get",
    user: { username: "admin", uid: "admin-uid", groups: ["system:masters", "system:authenticated"] },
    userAgent: "t<1>",
    annotations: { "authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": "" },
  });
  assert.deepEqual(complete.sourceIPs, ["192.0.2.7", "2001:db8::1", "127.0.0.1"]);
  assert.deepEqual(complete.objectRef, { resource: "secrets", namespace: "default", name: "none", apiVersion: "v1" });
  assert.deepEqual(complete.responseStatus, { metadata: {}, status: "Failure", reason: "NotFound", code: 404 });
  assert.ok(readFileSync(logFile, "utf8").includes('"userAgent":"t\\u003c1\\u003e"'));
});

test("a request of a deprecated version is annotated as such, with the release that removes it", async () => {
  const { headers } = await server.request("GET", "/apis/policy/v1beta1/podsecuritypolicies");
  assert.partialDeepStrictEqual(logged(headers["audit-id"]).at(-1).annotations, {
    "k8s.io/deprecated": "true",
    "k8s.io/removed-release": "1.25",
  });
});

for (const { forwarded, real, want } of [
  { forwarded: "127.0.0.1, 192.0.2.7", want: ["127.0.0.1", "192.0.2.7", "127.0.0.1"] },
  { forwarded: "192.0.2.7, 127.0.0.1", want: ["192.0.2.7", "127.0.0.1"] },
  { forwarded: "::ffff:192.0.2.7, ::FFFF:c000:0207", want: ["192.0.2.7", "192.0.2.7", "127.0.0.1"] },
  { forwarded: "fe80::1%eth0, 1.2.3, ", want: ["127.0.0.1"] },
  { forwarded: "192.0.2.7", real: "192.0.2.9", want: ["192.0.2.7", "192.0.2.9", "127.0.0.1"] },
  { forwarded: "192.0.2.7, 192.0.2.9", real: "192.0.2.7", want: ["192.0.2.7", "192.0.2.9", "127.0.0.1"] },
  { forwarded: "192.0.2.7", real: "127.0.0.1", want: ["192.0.2.7", "127.0.0.1"] },
  { forwarded: "192.0.2.7", real: "nowhere", want: ["192.0.2.7", "127.0.0.1"] },
]) {
  test(`the peer's address is the last one of a client that says it was forwarded for ${forwarded}${real === undefined ? "" : `, really ${real}`}`, async () => {
    const sent = { "x-forwarded-for": forwarded, ...(real !== undefined && { "x-real-ip": real }) };
    const { headers } = await server.request("GET", "/api/v1/namespaces/default/secrets/none", undefined, sent);
    assert.deepEqual(logged(headers["audit-id"]).at(-1).sourceIPs, want);
  });
}

test("a write at RequestResponse shows both objects, without managed fields where the policy says so", async () => {
  const sent = { metadata: { name: "both" }, data: { a: "<b>" } };
  const { headers, body } = await server.request("POST", configMaps, sent);
  const events = logged(headers["audit-id"]);
  assert.equal(events.length, 1);
  const [event] = events;
  assert.deepEqual(event.requestObject, {
    kind: "ConfigMap",
    apiVersion: "v1",
    metadata: { name: "both", creationTimestamp: null },
    data: { a: "<b>" },
  });
  const { managedFields: _, ...metadata } = body.metadata;
  assert.deepEqual(event.responseObject, { ...body, metadata });
  assert.deepEqual(event.responseStatus, { metadata: {}, code: 201 });
  assert.partialDeepStrictEqual(event.objectRef, { namespace: "default", name: "both" });
});

test("patches are shown as sent, whatever form the answer has", async () => {
  await server.request("POST", configMaps, { metadata: { name: "patched" } });
  const patch = '{ "data": {\n "z": "1", "a": "b c" } }';
  const { headers } = await server.request("PATCH", `${configMaps}/patched`, patch, {
    "content-type": "application/merge-patch+json",
    accept: "application/vnd.kubernetes.protobuf",
  });
  const [event] = logged(headers["audit-id"]);
  assert.equal(JSON.stringify(event.requestObject), '{"data":{"z":"1","a":"b c"}}');
  assert.partialDeepStrictEqual(event.responseObject, { kind: "ConfigMap", data: { z: "1", a: "b c" } });
});

test("lists are shown whole", async () => {
  await server.request("POST", configMaps, { metadata: { name: "listed" }, data: { big: "x".repeat(300_000) } });
  const { headers, body } = await server.request("GET", `${configMaps}?fieldSelector=metadata.name=listed`);
  const [event] = logged(headers["audit-id"]);
  assert.equal(event.responseObject.kind, "ConfigMapList");
  assert.equal(event.responseObject.items[0].data.big, body.items[0].data.big);
});

test("a watch says when it began", async () => {
  const { headers } = await server.request("GET", "/api/v1/namespaces?watch=1&timeoutSeconds=1");
  const [, started, complete] = logged(headers["audit-id"]);
  assert.partialDeepStrictEqual(started, { stage: "ResponseStarted", verb: "watch", responseStatus: { code: 200 } });
  assert.partialDeepStrictEqual(complete, { stage: "ResponseComplete", responseStatus: { code: 200 } });
});

test("a delete at Request shows the options that were sent", async () => {
  const path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
  await server.request("POST", path, { metadata: { name: "gone" } });
  await server.client.delete(roles, { namespace: "default", name: "gone" }, { propagationPolicy: "Background" });
  const complete = logged().findLast(({ verb }) => verb === "delete");
  assert.deepEqual(complete.requestObject, { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: "Background" });
  assert.equal(complete.responseObject, undefined);
  assert.partialDeepStrictEqual(complete.responseStatus, { status: "Success", code: 200 });
});

test("a refusal names the true user, the one impersonated, and the decision", async () => {
  const { headers } = await server.request("GET", "/api/v1/nodes", undefined, { "impersonate-user": "jane" });
  const complete = logged(headers["audit-id"]).at(-1);
  hasFields(complete, {
    user: { username: "admin" },
    impersonatedUser: { username: "jane", groups: ["system:authenticated"] },
    responseStatus: { status: "Failure", reason: "Forbidden", code: 403 },
    annotations: { "authorization.k8s.io/decision": "forbid" },
  });
});

test("failed authentication leaves one event, without a user", async () => {
  const { headers, code } = await server.request("GET", "/api/v1/pods", undefined, {
    authorization: "Bearer wrong",
    "x-remote-user": "admin",
  });
  assert.equal(code, 401);
  const events = logged(headers["audit-id"]);
  assert.equal(events.length, 1);
  assert.deepEqual(events[0].user, {});
  assert.equal(events[0].stage, "ResponseStarted");
  assert.deepEqual(events[0].responseStatus, {
    metadata: {},
    message: "Authentication failed, attempted: bearer",
    code: 401,
  });
});

test("a request that the policy excludes leaves no event", async () => {
  const { headers } = await server.request("GET", "/healthz");
  assert.deepEqual(logged(headers["audit-id"]), []);
});

test("the webhook gets every event in lists, also after it failed", async () => {
  const { headers } = await server.request("GET", "/version");
  const id = headers["audit-id"];
  await waitFor(() => lists.flatMap(({ items }) => items).filter(({ auditID }) => auditID === id).length === 2);
  assert.equal(failures, 0);
  assert.equal(lists[0]?.path, "/events?timeout=30s");
  const event = lists.flatMap(({ items }) => items).find(({ auditID }) => auditID === id);
  assert.equal(event.kind, undefined);
  assert.deepEqual(event, logged(id).map(({ kind: _kind, apiVersion: _apiVersion, ...item }) => item)[0]);
});

test("counts events and levels", async () => {
  const { text } = await server.request("GET", "/metrics");
  assert.match(text, /apiserver_audit_event_total [1-9]/);
  assert.match(text, /apiserver_audit_level_total\{level="Metadata"\} [1-9]/);
  assert.match(text, /apiserver_audit_level_total\{level="None"\} [1-9]/);
  assert.match(text, /apiserver_audit_requests_rejected_total 0/);
});

test("blocking-strict refuses what it cannot record", async (t) => {
  const strict = await startTestServer(t, [
    `--audit-policy-file=${policy}`,
    "--audit-log-path=/dev/full",
    "--audit-log-mode=blocking-strict",
  ]);
  const { code, text } = await strict.request("GET", "/version?x=<y>");
  assert.equal(code, 500);
  assert.equal(text, 'Internal Server Error: "/version?x=&lt;y&gt;": failed to store audit event\n');
  const metrics = await strict.request("GET", "/metrics");
  assert.match(metrics.text, /apiserver_audit_requests_rejected_total 1\n/);
  assert.match(metrics.text, /apiserver_audit_error_total\{plugin="log"\} 1\n/);
});
