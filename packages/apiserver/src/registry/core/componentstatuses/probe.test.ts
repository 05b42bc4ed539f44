import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, Socket } from "node:net";
import { test } from "node:test";
import type { ComponentStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { startTestServer } from "../../../testing/start-test-server.ts";
import type { SubresourceCall } from "../../generic/resource.ts";
import { componentStatusSubresource } from "./probe.ts";

const etcdHealth = '{"health":"true","reason":""}';

test("component statuses are probed for each request, and stored nowhere", async (t) => {
  const server = await startTestServer(t);
  const path = "/api/v1/componentstatuses";
  const { body } = await server.request("GET", path);
  assert.equal(body.kind, "ComponentStatusList");
  const names = body.items.map((item: { metadata: { name: string } }) => item.metadata.name);
  assert.deepEqual(names, ["controller-manager", "scheduler", "etcd-0"]);
  hasFields(body.items[2].conditions, [{ type: "Healthy", status: "True" }]);
  assert.match(body.items[2].conditions[0].message, /^{"health":"true"/);
  for (const { conditions } of body.items) assert.equal(conditions[0].type, "Healthy");

  const table = await server.request("GET", path, undefined, { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" });
  assert.deepEqual(
    table.body.columnDefinitions.map((column: { name: string }) => column.name),
    ["Name", "Status", "Message", "Error"],
  );
  assert.equal((await server.request("GET", `${path}/scheduler`)).body.metadata.name, "scheduler");
  const unknown = await server.request("GET", `${path}/moon`);
  assert.equal(unknown.code, 500);
  assert.equal(unknown.body.message, "Component not found: moon");
  assert.equal((await server.request("POST", path, {})).code, 405);
});

for (const { name, answer, want } of [
  { name: "is well", answer: { code: 200, body: etcdHealth }, want: { status: "True", message: etcdHealth } },
  {
    name: "is well in a word of JSON",
    answer: { code: 200, body: '{"health":true}' },
    want: { status: "True", message: '{"health":true}' },
  },
  {
    name: "says that it is not well",
    answer: { code: 200, body: '{"health":"false"}' },
    want: { status: "False", message: '{"health":"false"}', error: "Unhealthy status: false" },
  },
  {
    name: "answers with an error",
    answer: { code: 503, body: "no leader" },
    want: { status: "False", message: "HTTP probe failed with statuscode: 503" },
  },
  {
    name: "answers with the last code of success",
    answer: { code: 399, body: etcdHealth },
    want: { status: "True", message: etcdHealth },
  },
  {
    name: "answers with the first code of an error",
    answer: { code: 400, body: etcdHealth },
    want: { status: "False", message: "HTTP probe failed with statuscode: 400" },
  },
  {
    name: "says more than is read",
    answer: { code: 200, body: "x".repeat(100_000) },
    want: {
      status: "False",
      message: "x".repeat(10 * 1024),
      error: "invalid character 'x' looking for beginning of value",
    },
  },
  {
    name: "says nothing that can be read",
    answer: { code: 200, body: "OK" },
    want: {
      status: "False",
      message: "OK",
      error: "invalid character 'O' looking for beginning of value",
    },
  },
  {
    name: "says nothing of its health",
    answer: { code: 200, body: "{}" },
    want: { status: "False", message: "{}", error: "Unhealthy status: " },
  },
  { name: "is not there", answer: undefined, want: { status: "False" } },
]) {
  test(`an etcd that ${name}`, async (t) => {
    const server = createServer((request, response) => {
      if (answer !== undefined && request.url === "/health") response.writeHead(answer.code).end(answer.body);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    if (answer === undefined) server.close();
    t.after(() => server.close());
    const { handler } = componentStatusSubresource({ servers: [`http://127.0.0.1:${port}`] });
    assert.ok(handler.type === "object");
    const status = (await handler.get?.({ name: "etcd-0" } as SubresourceCall)) as ComponentStatus;
    const refused = `Get "http://127.0.0.1:${port}/health": dial tcp 127.0.0.1:${port}: connect: connection refused`;
    assert.deepEqual(status.conditions, [{ type: "Healthy", ...(answer === undefined && { message: refused }), ...want }]);
  });
}

test("an etcd that asks for a certificate gets that of the server, and its own is not looked at", async (t) => {
  const ca = await newCa({ commonName: "etcd" });
  const own = await newCertificate({ commonName: "etcd", usages: ["server"], ca });
  const client = await newCertificate({ commonName: "apiserver", usages: ["client"], ca });
  const pair = { cert: own.certPem, key: own.keyPem };
  const server = createTlsServer({ ...pair, ca: ca.certPem, requestCert: true }, (_request, response) =>
    response.end(etcdHealth),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const tls = { ca: undefined, cert: Buffer.from(client.certPem), key: Buffer.from(client.keyPem) };
  const { handler } = componentStatusSubresource({ servers: [`https://127.0.0.1:${port}`], tls });
  assert.ok(handler.type === "object");
  const status = (await handler.get?.({ name: "etcd-0" } as SubresourceCall)) as ComponentStatus;
  assert.deepEqual(status.conditions, [{ type: "Healthy", status: "True", message: etcdHealth }]);
});

test("a component that does not answer is given up after 20 s", async (t) => {
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => {
    silent.closeAllConnections();
    silent.close();
  });
  const limits: number[] = [];
  const { setTimeout: limit } = Socket.prototype;
  t.mock.method(Socket.prototype, "setTimeout", function shortened(this: Socket, ms: number, ended?: () => void) {
    if (ms > 0) limits.push(ms);
    return limit.call(this, Math.min(ms, 20), ended);
  });
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const { handler } = componentStatusSubresource({ servers: [url], tls: undefined } as never);
  assert.ok(handler.type === "object");
  const status = (await handler.get?.({ name: "etcd-0" } as SubresourceCall)) as ComponentStatus;
  assert.deepEqual(status.conditions, [
    { type: "Healthy", status: "False", message: `Get "${url}/health": context deadline exceeded` },
  ]);
  assert.ok(limits.includes(20_000), limits.join());
});
