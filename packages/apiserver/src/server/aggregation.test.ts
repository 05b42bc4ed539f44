/** Requests proxied to an aggregated server: real mutual TLS, a service whose cluster IP is an address of this machine. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { after, before, test } from "node:test";
import { newCa } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startAggregatedServer } from "../testing/aggregated-server.ts";
import { type Aggregation, startAggregation } from "../testing/start-aggregation.ts";

let setup: Aggregation;
before(async () => {
  setup = await startAggregation();
});
after(() => setup.stop());

const stranger = await newCa({ commonName: "strangers" });

test("objects of another server are made, read, listed, watched and deleted through this one", async (t) => {
  const other = await setup.aggregated(t, "crud.example.com");
  const path = "/apis/crud.example.com/v1/namespaces/default/flunders";
  const watch = connectHttp2(setup.server.url, { ca: setup.server.ca });
  t.after(() => watch.destroy());
  const stream = watch.request({ ":path": `${path}?watch=1`, authorization: `Bearer ${setup.server.adminToken}` });
  let seen = "";
  stream.on("data", (chunk: Buffer) => {
    seen += chunk.toString();
  });
  const [headers] = await once(stream, "response");
  assert.equal(headers[":status"], 200);
  const flunder = { kind: "Flunder", apiVersion: "crud.example.com/v1", metadata: { name: "first" } };
  assert.equal((await setup.server.request("POST", path, flunder)).code, 201);
  await waitFor(() => seen.includes('"ADDED"'), { what: "the event of the creation" });
  assert.equal((await setup.server.request("GET", `${path}/first`)).body.metadata.name, "first");
  assert.equal((await setup.server.request("GET", `${path}?limit=5&labelSelector=a%3Db`)).body.items.length, 1);
  assert.equal(other.requests.at(-1)?.url, `${path}?labelSelector=a%3Db&limit=5`);
  assert.equal((await setup.server.request("DELETE", `${path}/first`)).code, 200);
  await waitFor(() => seen.includes('"DELETED"'), { what: "the event of the deletion" });
  const missing = await setup.server.request("GET", `${path}/first`);
  assert.equal(missing.code, 404);
  assert.equal(missing.body.message, 'flunders "first" not found');
  assert.equal(other.watches, 1);
  stream.close();
  await waitFor(() => other.watches === 0, { what: "the watch to end behind the aggregator too" });
});

test("the other server learns the requesting user from the proxy's certificate and headers, and nothing that the client says of itself", async (t) => {
  const other = await setup.aggregated(t, "identity.example.com");
  const forged = {
    "x-remote-user": "root",
    "x-remote-group": "system:masters",
    "x-remote-extra-scopes": "all",
    "x-forwarded-for": "203.0.113.7",
    "audit-id": "abc",
  };
  await setup.server.request("GET", "/apis/identity.example.com/v1/headers", undefined, forged);
  const seen = other.requests.at(-1);
  assert.equal(seen?.certificate, "front-proxy-client");
  assert.equal(seen?.headers["x-remote-user"], "admin");
  assert.equal(seen?.headers["x-remote-group"], "system:masters, system:authenticated");
  for (const name of ["authorization", "x-remote-extra-scopes"]) assert.equal(seen?.headers[name], undefined, name);
  assert.equal(seen?.headers["x-forwarded-for"], "203.0.113.7, 127.0.0.1");
  assert.equal(seen?.headers["x-forwarded-uri"], "/apis/identity.example.com/v1/headers");
  assert.equal(seen?.headers["x-forwarded-proto"], "https");
  assert.equal(seen?.headers.host, seen?.headers["x-forwarded-host"]);
  assert.equal(seen?.headers["audit-id"], "abc");
});

test("an aggregated server sees the impersonated user, with escaped keys of extras", async (t) => {
  const other = await setup.aggregated(t, "impersonated.example.com");
  await setup.server.request("GET", "/apis/impersonated.example.com/v1/headers", undefined, {
    "impersonate-user": Buffer.from("zoë").toString("latin1"),
    "impersonate-group": "system:masters",
    "impersonate-extra-example.com%2fid": "1",
  });
  const { headers = {} } = other.requests.at(-1) ?? {};
  assert.equal(Buffer.from(String(headers["x-remote-user"]), "latin1").toString(), "zoë");
  assert.equal(headers["x-remote-extra-example.com%2fid"], "1");
  assert.equal(headers["impersonate-user"], undefined);
});

test("this server's own authorization comes first", async (t) => {
  const other = await setup.aggregated(t, "forbidden.example.com");
  const path = "/apis/forbidden.example.com/v1/namespaces/default/flunders";
  const { code, body } = await setup.server.request("GET", path, undefined, { authorization: "Bearer user-token" });
  assert.equal(code, 403);
  assert.match(body.message, /User "jane" cannot list resource "flunders" in API group "forbidden.example.com"/);
  assert.deepEqual(other.requests, []);
});

test("both bodies flow before they are whole", async (t) => {
  await setup.aggregated(t, "flow.example.com");
  const session = connectHttp2(setup.server.url, { ca: setup.server.ca });
  t.after(() => session.destroy());
  const stream = session.request(
    { ":method": "POST", ":path": "/apis/flow.example.com/v1/echo", authorization: `Bearer ${setup.server.adminToken}` },
    { endStream: false },
  );
  let received = 0;
  stream.on("data", (chunk: Buffer) => {
    received += chunk.length;
  });
  stream.write("first");
  const [headers] = await once(stream, "response");
  assert.equal(headers[":status"], 200);
  assert.equal(headers["access-control-allow-origin"], undefined, "this server alone says which pages may read it");
  await waitFor(() => received === 5, { what: "the beginning to come back" });
  const large = Buffer.alloc(8 << 20, "x");
  stream.end(large);
  await once(stream, "end");
  assert.equal(received, 5 + large.length);
});

test("a redirect of the other server is not passed on", async (t) => {
  await setup.aggregated(t, "redirect.example.com");
  const { code, headers, text } = await setup.server.request("GET", "/apis/redirect.example.com/v1/redirect");
  assert.equal(code, 502);
  assert.equal(headers["location"], undefined);
  assert.equal(text, "the backend attempted to redirect this request, which is not permitted");
});

test("an upgraded connection is passed through, with the user and without the client's credentials", async (t) => {
  const other = await setup.aggregated(t, "upgrade.example.com");
  const request = httpsRequest(`${setup.server.url}/apis/upgrade.example.com/v1/namespaces/a/flunders/b/exec`, {
    ca: setup.server.ca,
    headers: {
      authorization: `Bearer ${setup.server.adminToken}`,
      connection: "Upgrade",
      upgrade: "SPDY/3.1",
      "x-remote-user": "root",
    },
  });
  request.once("response", ({ statusCode }) => request.destroy(new Error(`the upgrade was refused with ${statusCode}`)));
  request.end();
  const [answer, socket] = (await once(request, "upgrade")) as [{ statusCode: number }, Socket];
  assert.equal(answer.statusCode, 101);
  socket.write("hello");
  const [echoed] = await once(socket, "data");
  assert.equal(String(echoed), "hello");
  socket.destroy();
  const { headers = {}, certificate } = other.requests.at(-1) ?? {};
  assert.equal(certificate, "front-proxy-client");
  assert.equal(headers["x-remote-user"], "admin");
  assert.equal(headers["authorization"], undefined);
});

test("an upgrade cannot lead to another path than the one that was authorized", async (t) => {
  const other = await setup.aggregated(t, "dots.example.com");
  const request = httpsRequest({
    host: "127.0.0.1",
    port: setup.server.port,
    ca: setup.server.ca,
    path: "/apis/dots.example.com/v1/namespaces/a/../../../../api",
    headers: { authorization: `Bearer ${setup.server.adminToken}`, connection: "Upgrade", upgrade: "SPDY/3.1" },
  });
  request.end();
  const [answer] = (await once(request, "response")) as [{ statusCode: number }];
  assert.equal(answer.statusCode, 503);
  assert.deepEqual(other.requests, []);
});

for (const { name, group, spec, code, text } of [
  {
    name: "an authority that did not sign the certificate",
    group: "ca.example.com",
    spec: { caBundle: Buffer.from(stranger.certPem).toString("base64") },
    code: 503,
    text: "error trying to reach service: x509: certificate signed by unknown authority\n",
  },
  {
    name: "a bundle that is none",
    group: "bundle.example.com",
    spec: { caBundle: Buffer.from("no certificate").toString("base64") },
    code: 500,
    text: "unable to load root certificates: unable to parse bytes as PEM block\n",
  },
  {
    name: "a certificate that is not verified",
    group: "unchecked.example.com",
    spec: { caBundle: undefined, insecureSkipTLSVerify: true },
    code: 200,
    text: undefined,
  },
]) {
  test(`an APIService with ${name} is answered with ${code}`, async (t) => {
    await setup.aggregated(t, group, spec);
    const answer = await setup.server.request("GET", `/apis/${group}/v1/headers`);
    assert.equal(answer.code, code, answer.text);
    if (text !== undefined) assert.equal(answer.text, text);
  });
}

test("a certificate for another name than the service's is refused", async (t) => {
  const group = "name.example.com";
  const other = await startAggregatedServer(t, {
    group,
    address: "127.0.10.200",
    names: ["else.default.svc"],
    proxyCa: setup.proxyCa,
  });
  await setup.makeService("name", "127.0.10.200", other.port);
  await setup.makeEndpoints("name");
  await setup.register(group, "name", other);
  await setup.whenReason(group, "Passed"); // the availability probe does not verify the certificate
  const { code, text } = await setup.server.request("GET", `/apis/${group}/v1/headers`);
  assert.equal(code, 503);
  assert.equal(text, "error trying to reach service: x509: certificate is valid for else.default.svc, not name.default.svc\n");
});

test("a server whose certificate has a common name alone is refused and counted, behind an APIService and as a webhook", async (t) => {
  const group = "nameless.example.com";
  const address = "127.0.10.201";
  const other = await startAggregatedServer(t, {
    ...{ group, address, names: [], commonName: "nameless.default.svc" },
    proxyCa: setup.proxyCa,
  });
  await setup.makeService("nameless", address, other.port);
  await setup.makeEndpoints("nameless");
  await setup.register(group, "nameless", other);
  await setup.whenReason(group, "Passed");
  const { code, text } = await setup.server.request("GET", `/apis/${group}/v1/headers`);
  assert.equal(code, 503);
  const why = "x509: certificate relies on legacy Common Name field, use SANs instead";
  assert.equal(text, `error trying to reach service: ${why}\n`);
  const hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  const rules = [{ apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], operations: ["CREATE"] }];
  const clientConfig = { service: { namespace: "default", name: "nameless", port: other.port }, caBundle: other.caBundle };
  const hook = { name: "nameless.example.com", clientConfig, rules, failurePolicy: "Ignore", sideEffects: "None" };
  await setup.made(hooks, { metadata: { name: "nameless" }, webhooks: [{ ...hook, admissionReviewVersions: ["v1"] }] });
  t.after(() => setup.server.request("DELETE", `${hooks}/nameless`));
  const counted = async (metric: string): Promise<boolean> =>
    new RegExp(`^${metric} [1-9]`, "m").test((await setup.server.request("GET", "/metrics")).text);
  assert.ok(await counted("apiserver_kube_aggregator_x509_missing_san_total"));
  let made = 0;
  await waitFor(
    async () => {
      await setup.made("/api/v1/namespaces/default/configmaps", { metadata: { name: `nameless-${made++}` } });
      return counted("apiserver_webhooks_x509_missing_san_total");
    },
    { what: "a call of the webhook" },
  );
});

test("a new certificate of the proxy is used as soon as its files are written", async (t) => {
  const other = await setup.aggregated(t, "renewed.example.com");
  await setup.writeProxyPair("front-proxy-renewed");
  await waitFor(
    async () => {
      await setup.server.request("GET", "/apis/renewed.example.com/v1/headers");
      return other.requests.at(-1)?.certificate === "front-proxy-renewed";
    },
    { what: "the new certificate" },
  );
});

test("an APIService that loses its service, and one that is deleted, are not proxied any more", async (t) => {
  const apiServices = "/apis/apiregistration.k8s.io/v1/apiservices";
  const merge = { "content-type": "application/merge-patch+json" };
  for (const [group, lose] of [
    ["local.example.com", () => setup.server.request("PATCH", `${apiServices}/v1.local.example.com`, withoutService, merge)],
    ["gone.example.com", () => setup.server.request("DELETE", `${apiServices}/v1.gone.example.com`)],
  ] as const) {
    await setup.aggregated(t, group);
    const answered = async (): Promise<number> => (await setup.server.request("GET", `/apis/${group}/v1`)).code;
    assert.equal(await answered(), 200);
    assert.equal((await lose()).code, 200);
    await waitFor(async () => (await answered()) === 404, { what: `${group} to be unknown` });
  }
});

const withoutService = { spec: { service: null, caBundle: null, insecureSkipTLSVerify: false } };
