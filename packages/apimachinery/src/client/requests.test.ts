/** What a client sends for each call and what it makes of the answers, over a transport in the test. */
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import type { StatusError } from "../objects/errors/status-error.ts";
import type { ResourceRef } from "../objects/meta/group-version.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { settle } from "../testing/wait-for.ts";
import { type Client, newClientFamily } from "./client.ts";
import type { ClientConfig } from "./config.ts";
import type { TransportRequest } from "./transport-messages.ts";

const pods: ResourceRef = { group: "", version: "v1", resource: "pods", kind: "Pod", namespaced: true };
const widgets: ResourceRef = { group: "x.io", version: "v1", resource: "widgets", kind: "Widget", namespaced: true };
const target = { namespace: "web", name: "a" };
const protobuf = "application/vnd.kubernetes.protobuf";

function aClient(
  answer: { status?: number; body?: unknown; headers?: Record<string, string> } = {},
  config: Partial<ClientConfig> = {},
) {
  const clock = newFakeClock();
  const seen: TransportRequest[] = [];
  let closed = 0;
  const transport = {
    async request(request: TransportRequest) {
      seen.push(request);
      const { status = 200, body = {}, headers = {} } = answer;
      const text = typeof body === "string" ? body : JSON.stringify(body);
      return { status, headers: { "content-type": "application/json", ...headers }, body: Readable.from([Buffer.from(text)]) };
    },
    certificateFault: () => "certificate has expired",
    reconnect() {},
    close: () => void closed++,
  };
  const family = newClientFamily({ host: "https://api:6443", qps: -1, ...config }, { clock, transport });
  return { client: family.member({ qps: -1, ...config }), family, seen, clock, closed: () => closed };
}

for (const [type, contentType] of [
  ["json", "application/json-patch+json"],
  ["merge", "application/merge-patch+json"],
  ["strategic", "application/strategic-merge-patch+json"],
  ["apply", "application/apply-patch+yaml"],
] as const) {
  test(`a patch of type ${type} is sent as ${contentType}`, async () => {
    const { client, seen } = aClient();
    await client.patch(pods, { ...target, subresource: "status" }, { type, body: [1] }, { dryRun: true });
    const [request] = seen;
    assert.deepEqual([request?.headers?.["content-type"], request?.body], [contentType, "[1]"]);
    assert.equal(request?.path, "/api/v1/namespaces/web/pods/a/status?dryRun=All");
  });
}

for (const { name, call, path, accept = "application/json", contentType } of [
  {
    name: "a read at a version",
    call: (client: Client) => client.get(pods, target, { resourceVersion: "0" }),
    path: "/api/v1/namespaces/web/pods/a?resourceVersion=0",
  },
  {
    name: "a read of metadata",
    call: (client: Client) => client.get(pods, target, { metadataOnly: true }),
    path: "/api/v1/namespaces/web/pods/a",
    accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
  },
  {
    name: "a page of a list",
    call: (client: Client) =>
      client.list(
        pods,
        { namespace: "web" },
        { fieldSelector: "a=b", continue: "x/y", resourceVersionMatch: "Exact", labelSelector: "" },
      ),
    path: "/api/v1/namespaces/web/pods?fieldSelector=a%3Db&continue=x%2Fy&resourceVersionMatch=Exact",
  },
  {
    name: "a deletion of a collection",
    call: (client: Client) => client.deleteCollection(pods, { namespace: "web" }, { fieldSelector: "a=b", labelSelector: "c=d" }),
    path: "/api/v1/namespaces/web/pods?labelSelector=c%3Dd&fieldSelector=a%3Db",
  },
  {
    name: "an object created in another namespace than its own",
    call: (client: Client) => client.create(pods, { metadata: { name: "a", namespace: "other" } }, { namespace: "web" }),
    path: "/api/v1/namespaces/web/pods",
  },
  {
    name: "an update under another name",
    call: (client: Client) =>
      client.update(pods, { metadata: { name: "a", namespace: "web" } }, { name: "b", namespace: "shop" }),
    path: "/api/v1/namespaces/shop/pods/b",
  },
  {
    name: "a built-in kind where protobuf is spoken",
    call: (client: Client) => client.get(pods, target),
    path: "/api/v1/namespaces/web/pods/a",
    accept: `${protobuf},application/json`,
    contentType: protobuf,
  },
  {
    name: "a custom kind where protobuf is spoken",
    call: (client: Client) => client.get(widgets, target),
    path: "/apis/x.io/v1/namespaces/web/widgets/a",
    contentType: protobuf,
  },
] as { name: string; call: (client: Client) => Promise<unknown>; path: string; accept?: string; contentType?: string }[]) {
  test(`requests ${name}`, async () => {
    const { client, seen } = aClient({}, { contentType });
    await call(client);
    assert.deepEqual([seen[0]?.path, seen[0]?.headers?.["accept"]], [path, accept]);
  });
}

test("a watch has its selectors, time limit and form in the request, and fails with the server's error", async () => {
  const failure = { kind: "Status", status: "Failure", reason: "Expired", message: "too old", code: 410, metadata: {} };
  const { client, seen } = aClient({ status: 410, body: failure });
  const { signal } = new AbortController();
  const options = { signal, labelSelector: "a=b", fieldSelector: "c=d", timeoutSeconds: 7, metadataOnly: true };
  await assert.rejects(
    Array.fromAsync(client.watch(pods, { namespace: "web" }, options)),
    (err: StatusError) => err.status.reason === "Expired",
  );
  assert.equal(seen[0]?.path, "/api/v1/namespaces/web/pods?labelSelector=a%3Db&fieldSelector=c%3Dd&timeoutSeconds=7&watch=true");
  assert.equal(seen[0]?.headers?.["accept"], "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");
});

test("a 401 says what is wrong with the client's certificate, another status does not", async () => {
  const failure = (code: number) => ({ kind: "Status", status: "Failure", reason: "R", message: "no", code, metadata: {} });
  for (const [code, message] of [
    [401, "no: client certificate has expired"],
    [403, "no"],
  ] as const) {
    const { client } = aClient({ status: code, body: failure(code) });
    await assert.rejects(client.get(pods, target), (err: StatusError) => err.message === message && err.code === code);
  }
});

for (const { code, call, reason, message } of [
  {
    code: 409,
    call: (client: Client) => client.create(pods, { metadata: { name: "a", namespace: "web" } }),
    reason: "AlreadyExists",
    message: "the server reported a conflict (post pods)",
  },
  {
    code: 409,
    call: (client: Client) => client.update(pods, { metadata: { name: "a", namespace: "web" } }),
    reason: "Conflict",
    message: "the server reported a conflict (put pods a)",
  },
  {
    code: 404,
    call: (client: Client) => client.list(pods),
    reason: "NotFound",
    message: "the server could not find the requested resource (get pods)",
  },
]) {
  test(`an answer of ${code} without a Status is ${reason}, with method and resource`, async () => {
    const { client } = aClient({ status: code, body: "<html>" });
    await assert.rejects(call(client), (err: StatusError) => {
      assert.deepEqual([err.status.reason, err.message], [reason, message]);
      return true;
    });
  });
}

test("raw sends headers of the caller over the usual ones and returns what came, whatever the status", async () => {
  const { client, seen } = aClient({ status: 418, body: "teapot", headers: { "x-a": "b" } });
  const { status, headers, body } = await client.raw("POST", "/x?y=z", {
    headers: { accept: "text/plain", "user-agent": "me" },
    body: "in",
  });
  assert.deepEqual([status, headers["x-a"], body.toString()], [418, "b", "teapot"]);
  const [request] = seen;
  assert.deepEqual(
    [request?.method, request?.path, request?.body, request?.headers?.["accept"], request?.headers?.["user-agent"]],
    ["POST", "/x?y=z", "in", "text/plain", "me"],
  );
});

test("a client without a limit of its own sends ten requests at once and five in a second", async () => {
  const { client, seen, clock } = aClient({}, { qps: undefined });
  const all = Promise.all(Array.from({ length: 16 }, () => client.get(pods, target)));
  await settle();
  assert.equal(seen.length, 10);
  await clock.advance(1000);
  assert.equal(seen.length, 15);
  await clock.advance(200);
  await all;
});

test("members of a family have their own limits and names", async () => {
  const { family, seen } = aClient();
  const [first, second] = [
    family.member({ qps: 1, burst: 1, userAgent: "one" }),
    family.member({ qps: 1, burst: 1, userAgent: "two" }),
  ];
  await Promise.all([first.get(pods, target), second.get(pods, target)]);
  assert.deepEqual(
    seen.map(({ headers }) => headers?.["user-agent"]),
    ["one", "two"],
  );
});
