/** Another API server behind the aggregator: real TLS both ways, a service whose cluster IP is an address of this machine. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type AggregatedServer, startAggregatedServer } from "../testing/aggregated-server.ts";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const proxyCa = await newCa({ commonName: "front proxies" });
const folder = mkdtempSync(join(tmpdir(), "cox-aggregation-"));
const file = (name: string): string => join(folder, name);
const apiServices = "/apis/apiregistration.k8s.io/v1/apiservices";

/** Key and certificate of the front proxy; the server reads them again when they are others. */
async function writeProxyPair(commonName: string): Promise<void> {
  const pair = await newCertificate({ commonName, usages: ["client"], ca: proxyCa });
  writeFileSync(file("proxy.key"), pair.keyPem, { mode: 0o600 });
  writeFileSync(file("proxy.crt"), pair.certPem);
}

let server: TestServer;
before(async () => {
  await writeProxyPair("front-proxy-client");
  server = await startTestServer(undefined, [
    "--service-cluster-ip-range=127.0.10.0/24",
    `--proxy-client-cert-file=${file("proxy.crt")}`,
    `--proxy-client-key-file=${file("proxy.key")}`,
  ]);
});
after(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

let addresses = 20;

/** A server, its service with an endpoint, and its APIService: available when this returns. */
async function aggregated(t: TestContext, group: string, spec: Record<string, unknown> = {}): Promise<AggregatedServer> {
  const address = `127.0.10.${addresses++}`;
  const name = group.replaceAll(".", "-");
  const other = await startAggregatedServer(t, { group, address, names: [`${name}.default.svc`], proxyCa: proxyCa.certPem });
  await makeService(name, address, other.port);
  await makeEndpoints(name);
  await register(group, name, other, spec);
  await hasReason(group, "Passed");
  t.after(async () => {
    await server.request("DELETE", `${apiServices}/v1.${group}`);
    await server.request("DELETE", `/api/v1/namespaces/default/services/${name}`);
  });
  return other;
}

async function made(path: string, object: object): Promise<void> {
  const { code, text } = await server.request("POST", path, object);
  assert.equal(code, 201, text);
}

const makeService = (name: string, clusterIP: string, port: number): Promise<void> =>
  made("/api/v1/namespaces/default/services", { metadata: { name }, spec: { clusterIP, ports: [{ port }] } });

const makeEndpoints = (name: string): Promise<void> =>
  made("/api/v1/namespaces/default/endpoints", {
    metadata: { name },
    subsets: [{ addresses: [{ ip: "192.0.2.1" }], ports: [{ port: 443 }] }],
  });

const register = (
  group: string,
  service: string,
  { caBundle, port }: Pick<AggregatedServer, "caBundle" | "port">,
  spec: object = {},
): Promise<void> =>
  made(apiServices, {
    metadata: { name: `v1.${group}` },
    spec: {
      group,
      version: "v1",
      groupPriorityMinimum: 2000,
      versionPriority: 10,
      service: { namespace: "default", name: service, port },
      caBundle,
      ...spec,
    },
  });

async function hasReason(group: string, reason: string): Promise<{ status: string; message: string }> {
  return waitFor(
    async () => {
      const { body } = await server.request("GET", `${apiServices}/v1.${group}`);
      const condition = body.status?.conditions?.find(({ type }: { type: string }) => type === "Available");
      return condition?.reason === reason && condition;
    },
    { what: `${group} to be ${reason}` },
  );
}

test("objects of another server are made, read, listed, watched and deleted through this one", async (t) => {
  const other = await aggregated(t, "crud.example.com");
  const path = "/apis/crud.example.com/v1/namespaces/default/flunders";
  const watch = connectHttp2(server.url, { ca: server.ca });
  t.after(() => watch.destroy());
  const stream = watch.request({ ":path": `${path}?watch=1`, authorization: `Bearer ${server.adminToken}` });
  let seen = "";
  stream.on("data", (chunk: Buffer) => {
    seen += chunk.toString();
  });
  const [headers] = await once(stream, "response");
  assert.equal(headers[":status"], 200);
  const flunder = { kind: "Flunder", apiVersion: "crud.example.com/v1", metadata: { name: "first" } };
  assert.equal((await server.request("POST", path, flunder)).code, 201);
  await waitFor(() => seen.includes('"ADDED"'), { what: "the event of the creation" });
  assert.equal((await server.request("GET", `${path}/first`)).body.metadata.name, "first");
  assert.equal((await server.request("GET", `${path}?limit=5&labelSelector=a%3Db`)).body.items.length, 1);
  assert.equal(other.requests.at(-1)?.url, `${path}?labelSelector=a%3Db&limit=5`);
  assert.equal((await server.request("DELETE", `${path}/first`)).code, 200);
  await waitFor(() => seen.includes('"DELETED"'), { what: "the event of the deletion" });
  const missing = await server.request("GET", `${path}/first`);
  assert.equal(missing.code, 404);
  assert.equal(missing.body.message, 'flunders "first" not found');
  assert.equal(other.watches, 1);
  stream.close();
  await waitFor(() => other.watches === 0, { what: "the watch to end behind the aggregator too" });
});

test("the other server is told who asks by the proxy's certificate and headers, and nothing that the client says of itself", async (t) => {
  const other = await aggregated(t, "identity.example.com");
  const forged = {
    "x-remote-user": "root",
    "x-remote-group": "system:masters",
    "x-remote-extra-scopes": "all",
    "x-forwarded-for": "203.0.113.7",
    "audit-id": "abc",
  };
  await server.request("GET", "/apis/identity.example.com/v1/headers", undefined, forged);
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

test("who is impersonated is who the other server sees, extras with their keys escaped", async (t) => {
  const other = await aggregated(t, "impersonated.example.com");
  await server.request("GET", "/apis/impersonated.example.com/v1/headers", undefined, {
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
  const other = await aggregated(t, "forbidden.example.com");
  const path = "/apis/forbidden.example.com/v1/namespaces/default/flunders";
  const { code, body } = await server.request("GET", path, undefined, { authorization: "Bearer user-token" });
  assert.equal(code, 403);
  assert.match(body.message, /User "jane" cannot list resource "flunders" in API group "forbidden.example.com"/);
  assert.deepEqual(other.requests, []);
});

test("both bodies flow before they are whole", async (t) => {
  await aggregated(t, "flow.example.com");
  const session = connectHttp2(server.url, { ca: server.ca });
  t.after(() => session.destroy());
  const stream = session.request(
    { ":method": "POST", ":path": "/apis/flow.example.com/v1/echo", authorization: `Bearer ${server.adminToken}` },
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
  await aggregated(t, "redirect.example.com");
  const { code, headers, text } = await server.request("GET", "/apis/redirect.example.com/v1/redirect");
  assert.equal(code, 502);
  assert.equal(headers["location"], undefined);
  assert.equal(text, "the backend attempted to redirect this request, which is not permitted");
});

test("an upgraded connection is passed through, with the user and without the client's credentials", async (t) => {
  const other = await aggregated(t, "upgrade.example.com");
  const request = httpsRequest(`${server.url}/apis/upgrade.example.com/v1/namespaces/a/flunders/b/exec`, {
    ca: server.ca,
    headers: {
      authorization: `Bearer ${server.adminToken}`,
      connection: "Upgrade",
      upgrade: "SPDY/3.1",
      "x-remote-user": "root",
    },
  });
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
  const other = await aggregated(t, "dots.example.com");
  const request = httpsRequest({
    host: "127.0.0.1",
    port: server.port,
    ca: server.ca,
    path: "/apis/dots.example.com/v1/namespaces/a/../../../../api",
    headers: { authorization: `Bearer ${server.adminToken}`, connection: "Upgrade", upgrade: "SPDY/3.1" },
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
    spec: { caBundle: Buffer.from(proxyCa.certPem).toString("base64") },
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
    name: "a certificate that nobody checks",
    group: "unchecked.example.com",
    spec: { caBundle: undefined, insecureSkipTLSVerify: true },
    code: 200,
    text: undefined,
  },
]) {
  test(`an APIService with ${name} is answered with ${code}`, async (t) => {
    await aggregated(t, group, spec);
    const answer = await server.request("GET", `/apis/${group}/v1/headers`);
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
    proxyCa: proxyCa.certPem,
  });
  await makeService("name", "127.0.10.200", other.port);
  await makeEndpoints("name");
  await register(group, "name", other);
  await hasReason(group, "Passed"); // the probe checks nothing
  const { code, text } = await server.request("GET", `/apis/${group}/v1/headers`);
  assert.equal(code, 503);
  assert.equal(text, "error trying to reach service: x509: certificate is valid for else.default.svc, not name.default.svc\n");
});

test("the condition Available says step by step what is missing, and nobody is proxied to before it is true", async (t) => {
  const group = "steps.example.com";
  const address = "127.0.10.201";
  const other = await startAggregatedServer(t, { group, address, names: ["steps.default.svc"], proxyCa: proxyCa.certPem });
  const services = "/api/v1/namespaces/default/services";
  await register(group, "steps", other);
  assert.equal((await hasReason(group, "ServiceNotFound")).message, 'service/steps in "default" is not present');
  const refused = await server.request("GET", `/apis/${group}/v1/headers`);
  assert.deepEqual([refused.code, refused.text], [503, "service unavailable\n"]);
  await made(services, { metadata: { name: "steps" }, spec: { clusterIP: address, ports: [{ port: 1 }] } });
  assert.equal(
    (await hasReason(group, "ServicePortError")).message,
    `service/steps in "default" is not listening on port ${other.port}`,
  );
  const patch = { spec: { ports: [{ name: "https", port: other.port }] } };
  await server.request("PATCH", `${services}/steps`, patch, { "content-type": "application/merge-patch+json" });
  assert.equal((await hasReason(group, "EndpointsNotFound")).message, 'cannot find endpoints for service/steps in "default"');
  await makeEndpoints("steps");
  assert.equal(
    (await hasReason(group, "MissingEndpoints")).message,
    'endpoints for service/steps in "default" have no addresses with port name "https"',
  );
  other.discoveryStatus = 500;
  const subsets = [{ addresses: [{ ip: "192.0.2.1" }], ports: [{ name: "https", port: 443 }] }];
  const endpoints = "/api/v1/namespaces/default/endpoints/steps";
  await server.request("PATCH", endpoints, { subsets }, { "content-type": "application/merge-patch+json" });
  const url = `https://${address}:${other.port}/apis/${group}/v1`;
  assert.equal(
    (await hasReason(group, "FailedDiscoveryCheck")).message,
    `failing or missing response from ${url}: bad status from ${url}: 500`,
  );
  other.discoveryStatus = 200;
  assert.deepEqual((await hasReason(group, "Passed")).message, "all checks passed");
  assert.equal((await server.request("GET", `/apis/${group}/v1/headers`)).code, 200);
  await server.request("DELETE", `${services}/steps`);
  assert.equal((await hasReason(group, "ServiceNotFound")).status, "False");
  const { text } = await server.request("GET", "/metrics");
  assert.match(text, /^aggregator_unavailable_apiservice\{name="v1.steps.example.com"\} 1$/m);
  assert.match(text, /^aggregator_unavailable_apiservice\{name="v1.apps"\} 0$/m);
  assert.match(text, /^aggregator_unavailable_apiservice_total\{name="v1.steps.example.com",reason="ServiceNotFound"\} 1$/m);
  assert.match(
    text,
    /^apiserver_request_terminations_total\{.*group="steps.example.com".*component="aggregator",code="503"\} 1$/m,
  );
  await server.request("DELETE", `${apiServices}/v1.${group}`);
  await waitFor(async () => !(await server.request("GET", "/metrics")).text.includes('name="v1.steps.example.com"} '), {
    what: "the gauge to go with the APIService",
  });
});

test("discovery announces groups of other servers by their priority, and kubectl's columns show who answers", async (t) => {
  await aggregated(t, "zebra.example.com", { groupPriorityMinimum: 17_450 });
  await register("beta.example.com", "nobody", { caBundle: "", port: 443 }, { caBundle: undefined, groupPriorityMinimum: 10 });
  t.after(() => server.request("DELETE", `${apiServices}/v1.beta.example.com`));
  await hasReason("beta.example.com", "ServiceNotFound");
  const { body } = await server.request("GET", "/apis");
  const names = body.groups.map(({ name }: { name: string }) => name);
  assert.equal(names[0], "apiregistration.k8s.io");
  const at = names.indexOf("zebra.example.com");
  assert.deepEqual(names.slice(at - 1, at + 2), ["autoscaling", "zebra.example.com", "batch"]);
  assert.equal(names.at(-1), "beta.example.com", "announced, though nobody answers");
  assert.deepEqual((await server.request("GET", "/apis/zebra.example.com")).body, {
    kind: "APIGroup",
    apiVersion: "v1",
    name: "zebra.example.com",
    versions: [{ groupVersion: "zebra.example.com/v1", version: "v1" }],
    preferredVersion: { groupVersion: "zebra.example.com/v1", version: "v1" },
  });
  const resources = await server.request("GET", "/apis/zebra.example.com/v1");
  assert.equal(resources.body.resources[0].name, "flunders");
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
  const { rows } = (await server.request("GET", apiServices, undefined, { accept })).body;
  const shown = rows.map(({ cells }: { cells: string[] }) => cells.slice(0, 3).join(" "));
  for (const row of [
    "v1. Local True",
    "v1.apps Local True",
    "v1.zebra.example.com default/zebra-example-com True",
    "v1.beta.example.com default/nobody False (ServiceNotFound)",
  ]) {
    assert.ok(shown.includes(row), row);
  }
  const { paths } = (await server.request("GET", "/")).body;
  assert.ok(paths.includes("/apis/zebra.example.com/v1"));
});

test("an APIService that is gone is neither proxied nor announced", async (t) => {
  await aggregated(t, "gone.example.com");
  await server.request("DELETE", `${apiServices}/v1.gone.example.com`);
  await waitFor(async () => (await server.request("GET", "/apis/gone.example.com/v1")).code === 404, {
    what: "the path to be gone",
  });
  assert.equal((await server.request("GET", "/apis/gone.example.com/v1/headers")).text, "404 page not found\n");
  assert.equal((await server.request("GET", "/apis/gone.example.com")).code, 404);
});

test("a built-in APIService that is deleted stays away until the next start, and its group is served all the same", async () => {
  await server.request("DELETE", `${apiServices}/v1beta1.batch`);
  await waitFor(async () => (await server.request("GET", "/apis/batch")).body.versions.length === 1, {
    what: "the version not to be announced",
  });
  assert.equal((await server.request("GET", "/apis/batch/v1beta1/cronjobs")).code, 200);
  assert.equal((await server.request("GET", `${apiServices}/v1beta1.batch`)).code, 404);
});

test("what another server says of its kinds is part of /openapi/v2, in JSON and as protobuf", async (t) => {
  await aggregated(t, "described.example.com");
  const document = await waitFor(
    async () => {
      const { body } = await server.request("GET", "/openapi/v2");
      return "/apis/described.example.com/v1/namespaces/{namespace}/flunders" in body.paths && body;
    },
    { what: "the path to be described" },
  );
  const { definitions, paths } = document;
  assert.ok("/api/v1/pods" in paths && !("/healthz" in paths));
  const { metadata, spec } = definitions["test.example.v1.Flunder"].properties;
  const renamed = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta_v2";
  assert.deepEqual(metadata, { $ref: `#/definitions/${renamed}`, description: "What it is called." });
  assert.equal(spec.properties.default.$ref, `#/definitions/${renamed}`);
  assert.equal(definitions[renamed].description, "Another one than the API server's.");
  assert.notEqual(definitions["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"].description, definitions[renamed].description);
  assert.equal(definitions["test.example.Health"], undefined, "of a path that is not sent on");
  const accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
  const { code, text } = await server.request("GET", "/openapi/v2", undefined, { accept });
  assert.equal(code, 200);
  assert.ok(text.includes("A flunder is a wardle's friend."));
});

test("health names what follows the proxy's certificate, before the rest of the aggregator", async () => {
  const { text } = await server.request("GET", "/livez?verbose");
  const following = "[+]poststarthook/aggregator-reload-proxy-client-cert ok\n";
  assert.ok(text.includes(`${following}[+]poststarthook/start-kube-aggregator-informers ok\n`), text);
});

test("a new certificate of the proxy is used as soon as its files are there", async (t) => {
  const other = await aggregated(t, "renewed.example.com");
  await writeProxyPair("front-proxy-renewed");
  await waitFor(
    async () => {
      await server.request("GET", "/apis/renewed.example.com/v1/headers");
      return other.requests.at(-1)?.certificate === "front-proxy-renewed";
    },
    { what: "the new certificate" },
  );
});
