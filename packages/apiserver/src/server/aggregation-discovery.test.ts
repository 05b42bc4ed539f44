/** Information about aggregated servers: conditions, discovery, tables, OpenAPI, metrics, health. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startAggregatedServer } from "../testing/aggregated-server.ts";
import { type Aggregation, apiServices, startAggregation } from "../testing/start-aggregation.ts";

let setup: Aggregation;
before(async () => {
  setup = await startAggregation();
});
after(() => setup.stop());

test("the condition Available says step by step what is missing, and no request is proxied before it is true", async (t) => {
  const group = "steps.example.com";
  const address = "127.0.10.201";
  const other = await startAggregatedServer(t, { group, address, names: ["steps.default.svc"], proxyCa: setup.proxyCa });
  const services = "/api/v1/namespaces/default/services";
  await setup.register(group, "steps", other);
  assert.equal((await setup.whenReason(group, "ServiceNotFound")).message, 'service/steps in "default" is not present');
  const refused = await setup.server.request("GET", `/apis/${group}/v1/headers`);
  assert.deepEqual([refused.code, refused.text], [503, "service unavailable\n"]);
  await setup.made(services, { metadata: { name: "steps" }, spec: { clusterIP: address, ports: [{ port: 1 }] } });
  assert.equal(
    (await setup.whenReason(group, "ServicePortError")).message,
    `service/steps in "default" is not listening on port ${other.port}`,
  );
  const patch = { spec: { ports: [{ name: "https", port: other.port }] } };
  await setup.server.request("PATCH", `${services}/steps`, patch, { "content-type": "application/merge-patch+json" });
  assert.equal(
    (await setup.whenReason(group, "EndpointsNotFound")).message,
    'cannot find endpoints for service/steps in "default"',
  );
  await setup.makeEndpoints("steps");
  assert.equal(
    (await setup.whenReason(group, "MissingEndpoints")).message,
    'endpoints for service/steps in "default" have no addresses with port name "https"',
  );
  other.discoveryStatus = 500;
  const subsets = [{ addresses: [{ ip: "192.0.2.1" }], ports: [{ name: "https", port: 443 }] }];
  const endpoints = "/api/v1/namespaces/default/endpoints/steps";
  await setup.server.request("PATCH", endpoints, { subsets }, { "content-type": "application/merge-patch+json" });
  const url = `https://${address}:${other.port}/apis/${group}/v1`;
  assert.equal(
    (await setup.whenReason(group, "FailedDiscoveryCheck")).message,
    `failing or missing response from ${url}: bad status from ${url}: 500`,
  );
  other.discoveryStatus = 200;
  assert.deepEqual((await setup.whenReason(group, "Passed")).message, "all checks passed");
  assert.equal((await setup.server.request("GET", `/apis/${group}/v1/headers`)).code, 200);
  await setup.server.request("DELETE", `${services}/steps`);
  assert.equal((await setup.whenReason(group, "ServiceNotFound")).status, "False");
  const { text } = await setup.server.request("GET", "/metrics");
  assert.match(text, /^aggregator_unavailable_apiservice\{name="v1.steps.example.com"\} 1$/m);
  assert.match(text, /^aggregator_unavailable_apiservice\{name="v1.apps"\} 0$/m);
  assert.match(text, /^aggregator_unavailable_apiservice_total\{name="v1.steps.example.com",reason="ServiceNotFound"\} 1$/m);
  assert.match(
    text,
    /^apiserver_request_terminations_total\{.*group="steps.example.com".*component="aggregator",code="503"\} 1$/m,
  );
  await setup.server.request("DELETE", `${apiServices}/v1.${group}`);
  await waitFor(async () => !(await setup.server.request("GET", "/metrics")).text.includes('name="v1.steps.example.com"} '), {
    what: "the gauge to go with the APIService",
  });
});

test("discovery lists groups of aggregated servers by their priority, and kubectl's columns show the service of each", async (t) => {
  await setup.aggregated(t, "zebra.example.com", { groupPriorityMinimum: 17_450 });
  await setup.register(
    "beta.example.com",
    "nobody",
    { caBundle: "", port: 443 },
    { caBundle: undefined, groupPriorityMinimum: 10 },
  );
  t.after(() => setup.server.request("DELETE", `${apiServices}/v1.beta.example.com`));
  await setup.whenReason("beta.example.com", "ServiceNotFound");
  const { body } = await setup.server.request("GET", "/apis");
  const names = body.groups.map(({ name }: { name: string }) => name);
  assert.equal(names[0], "apiregistration.k8s.io");
  const at = names.indexOf("zebra.example.com");
  assert.deepEqual(names.slice(at - 1, at + 2), ["autoscaling", "zebra.example.com", "batch"]);
  assert.equal(names.at(-1), "beta.example.com", "announced, though its server does not answer");
  assert.deepEqual((await setup.server.request("GET", "/apis/zebra.example.com")).body, {
    kind: "APIGroup",
    apiVersion: "v1",
    name: "zebra.example.com",
    versions: [{ groupVersion: "zebra.example.com/v1", version: "v1" }],
    preferredVersion: { groupVersion: "zebra.example.com/v1", version: "v1" },
  });
  const resources = await setup.server.request("GET", "/apis/zebra.example.com/v1");
  assert.equal(resources.body.resources[0].name, "flunders");
  const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
  const { rows } = (await setup.server.request("GET", apiServices, undefined, { accept })).body;
  const shown = rows.map(({ cells }: { cells: string[] }) => cells.slice(0, 3).join(" "));
  for (const row of [
    "v1. Local True",
    "v1.apps Local True",
    "v1.zebra.example.com default/zebra-example-com True",
    "v1.beta.example.com default/nobody False (ServiceNotFound)",
  ]) {
    assert.ok(shown.includes(row), row);
  }
  const { paths } = (await setup.server.request("GET", "/")).body;
  assert.ok(paths.includes("/apis/zebra.example.com/v1"));
});

test("a deleted APIService is neither proxied nor listed in discovery", async (t) => {
  await setup.aggregated(t, "gone.example.com");
  await setup.server.request("DELETE", `${apiServices}/v1.gone.example.com`);
  await waitFor(async () => (await setup.server.request("GET", "/apis/gone.example.com/v1")).code === 404, {
    what: "the path to be gone",
  });
  assert.equal((await setup.server.request("GET", "/apis/gone.example.com/v1/headers")).text, "404 page not found\n");
  assert.equal((await setup.server.request("GET", "/apis/gone.example.com")).code, 404);
});

test("a deleted built-in APIService is created again at the next start, and its group is served meanwhile", async () => {
  await setup.server.request("DELETE", `${apiServices}/v1beta1.batch`);
  await waitFor(async () => (await setup.server.request("GET", "/apis/batch")).body.versions.length === 1, {
    what: "the version not to be announced",
  });
  assert.equal((await setup.server.request("GET", "/apis/batch/v1beta1/cronjobs")).code, 200);
  assert.equal((await setup.server.request("GET", `${apiServices}/v1beta1.batch`)).code, 404);
});

test("/openapi/v2 contains the paths and definitions of an aggregated server, in JSON and in protobuf", async (t) => {
  await setup.aggregated(t, "described.example.com");
  const document = await waitFor(
    async () => {
      const { body } = await setup.server.request("GET", "/openapi/v2");
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
  const { code, text } = await setup.server.request("GET", "/openapi/v2", undefined, { accept });
  assert.equal(code, 200);
  assert.ok(text.includes("A flunder is a wardle's friend."));
});

test("the status of an APIService is written without its labels, annotations and spec", async () => {
  await setup.register("written.example.com", "nobody", { caBundle: "", port: 443 }, { caBundle: undefined });
  const path = `${apiServices}/v1.written.example.com`;
  await setup.whenReason("written.example.com", "ServiceNotFound");
  const { body } = await setup.server.request("GET", path);
  const conditions = [{ type: "Other", status: "True" }, ...body.status.conditions];
  const metadata = { ...body.metadata, labels: { a: "b" }, annotations: { c: "d" }, finalizers: ["e"] };
  const next = { ...body, metadata, spec: { ...body.spec, versionPriority: 1 }, status: { conditions } };
  const { code, body: written, text } = await setup.server.request("PUT", `${path}/status`, next);
  assert.equal(code, 200, text);
  assert.equal(written.status.conditions.length, 2);
  assert.equal(written.spec.versionPriority, 10);
  for (const field of ["labels", "annotations", "finalizers"]) assert.equal(written.metadata[field], undefined, field);
  await setup.server.request("DELETE", path);
});

test("health names what follows the proxy's certificate, before the rest of the aggregator", async () => {
  const { text } = await setup.server.request("GET", "/livez?verbose");
  const following = "[+]poststarthook/aggregator-reload-proxy-client-cert ok\n";
  assert.ok(text.includes(`${following}[+]poststarthook/start-kube-aggregator-informers ok\n`), text);
});
