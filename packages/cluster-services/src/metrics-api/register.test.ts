import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import type { APIService } from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";
import type { Endpoints, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { apiServices, endpoints, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { apiServiceName, serviceName, serviceNamespace } from "./names.ts";
import { register } from "./register.ts";

const key = `${serviceNamespace}/${serviceName}`;
const { signal } = new AbortController();
const here = { address: "192.0.2.1", port: 10444, caPem: "CA 1" };

function setUp() {
  const client = newFakeClient();
  const writes = (): string[] => client.writes.map(({ verb, resource }) => `${verb} ${resource}`);
  const take = (): string[] => {
    const made = writes();
    client.clearActions();
    return made;
  };
  return { client, take };
}

test("registers once; where it serves and its authority are renewed, what others wrote beside it stays", async () => {
  const { client, take } = setUp();
  await register(client, here, signal);
  assert.deepEqual(take(), ["create services", "create endpoints", "create apiservices"]);
  await register(client, here, signal);
  assert.deepEqual(take(), []);
  const known = client.object<APIService>(apiServices, apiServiceName) as APIService;
  client.put(apiServices, { ...known, metadata: { ...known.metadata, annotations: { note: "kept" } } });
  const service = client.object<Service>(services, key) as Service;
  client.put(services, { ...service, spec: { ...service.spec, clusterIP: "10.96.0.7" } });
  await register(client, { ...here, address: "192.0.2.2", caPem: "CA 2" }, signal);
  assert.deepEqual(take(), ["update endpoints", "update apiservices"]);
  assert.equal(client.object<Endpoints>(endpoints, key)?.subsets?.[0]?.addresses?.[0]?.ip, "192.0.2.2");
  const { metadata, spec } = client.object<APIService>(apiServices, apiServiceName) as APIService;
  assert.deepEqual([metadata.annotations, Buffer.from(String(spec?.caBundle), "base64").toString()], [{ note: "kept" }, "CA 2"]);
  assert.equal(client.object<Service>(services, key)?.spec.clusterIP, "10.96.0.7");
});

test("another port at the same address is registered", async () => {
  const { client, take } = setUp();
  await register(client, here, signal);
  take();
  await register(client, { ...here, port: 10_555 }, signal);
  assert.deepEqual(take(), ["update endpoints"]);
  assert.equal(client.object<Endpoints>(endpoints, key)?.subsets?.[0]?.ports?.[0]?.port, 10_555);
});

test("another server's registration is left alone, whatever its Service is called", async () => {
  for (const service of [
    { namespace: "other", name: serviceName, port: 443 },
    { namespace: serviceNamespace, name: "other", port: 443 },
    undefined,
  ]) {
    const { client, take } = setUp();
    const spec = { group: "metrics.k8s.io", version: "v1beta1", groupPriorityMinimum: 1, versionPriority: 1, service };
    client.put(apiServices, { metadata: { name: apiServiceName }, spec });
    await assert.rejects(register(client, here, signal), /is served by /);
    assert.deepEqual(take(), []);
  }
});

test("objects that another process makes at the same time are no failure; a change meanwhile and a refusal are", async () => {
  const { client, take } = setUp();
  for (const ref of [services, endpoints, apiServices])
    client.react("create", ref.resource, ({ sent }) => void client.put(ref, sent as Service));
  await register(client, here, signal);
  take();
  client.react("update", "endpoints", () => {
    const known = client.object<Endpoints>(endpoints, key) as Endpoints;
    client.put(endpoints, known);
  });
  await assert.rejects(register(client, { ...here, port: 1 }, signal), /modified/);
  const [write] = client.writes;
  assert.ok((write?.sent as Endpoints | undefined)?.metadata.resourceVersion, "of the version that was seen");
  assert.deepEqual(take(), ["update endpoints"]);
  client.react("get", "services", () => {
    throw forbidden(services, serviceName, "no right");
  });
  await assert.rejects(register(client, here, signal), /no right/);
  assert.deepEqual(take(), []);
});
