import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import type { APIService } from "@coxswain/apimachinery/objects/schema/kinds/apiregistration/v1";
import type { Endpoints, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { apiServices, endpoints, services } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { apiServiceName, serviceName, serviceNamespace } from "./names.ts";
import { keepRegistered, register } from "./register.ts";

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
  assert.deepEqual(client.object<Service>(services, key)?.spec.ports, [
    { name: "https", protocol: "TCP", port: 443, targetPort: 10444 },
  ]);
  assert.deepEqual(client.object<Endpoints>(endpoints, key)?.subsets, [
    { addresses: [{ ip: "192.0.2.1" }], ports: [{ name: "https", port: 10444, protocol: "TCP" }] },
  ]);
  assert.deepEqual(client.object<APIService>(apiServices, apiServiceName)?.spec, {
    ...{ group: "metrics.k8s.io", version: "v1beta1", groupPriorityMinimum: 100, versionPriority: 100 },
    service: { namespace: "kube-system", name: "coxswain-metrics", port: 443 },
    caBundle: Buffer.from("CA 1").toString("base64"),
  });
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
  const other = setUp();
  other.client.react("create", "services", () => {
    throw forbidden(services, serviceName, "no right to create");
  });
  await assert.rejects(register(other.client, here, signal), /no right to create/);
  assert.deepEqual(other.take(), ["create services"]);
});

function kept() {
  const clock = newFakeClock();
  const ending = new AbortController();
  const state = {
    tries: 0,
    failure: undefined as Error | undefined,
    passedMs: 0,
    attempt: undefined as Promise<void> | undefined,
  };
  const lines: string[] = [];
  const failed: string[] = [];
  const registered = keepRegistered({
    async register() {
      state.tries++;
      if (state.failure !== undefined) throw state.failure;
      await state.attempt;
    },
    log: {
      ...discardLogger,
      info: (text: string) => void lines.push(text),
      error: (_: string, err?: unknown) => void lines.push(String(err)),
    },
    fail: (err) => void failed.push(err.message),
    clock: { ...clock, monotonic: () => clock.monotonic() + state.passedMs },
    signal: ending.signal,
  });
  const tries = async (ms: number): Promise<number> => {
    state.tries = 0;
    await clock.advance(ms);
    return state.tries;
  };
  return { clock, ending, state, lines, failed, registered, tries };
}

test("a server is registered again every 30 s, and 2 s after a failure; each problem is logged once, and is its health", async () => {
  const { registered, state, lines, tries } = kept();
  assert.throws(() => registered.check(), /does not know this server yet/);
  await tries(0);
  registered.check();
  assert.deepEqual([await tries(29_999), await tries(1)], [0, 1]);
  state.failure = new Error("no");
  assert.equal(await tries(30_000), 1);
  assert.throws(() => registered.check(), /^Error: no$/);
  assert.equal(await tries(4_000), 2);
  state.failure = new Error("another");
  assert.equal(await tries(2_000), 1);
  state.failure = undefined;
  assert.equal(await tries(2_000), 1);
  registered.check();
  assert.equal(await tries(30_000), 1);
  assert.deepEqual(lines, ["Serving the metrics API", "Error: no", "Error: another", "Serving the metrics API"]);
});

test("after half of the certificate's life the server is to be replaced; not before", async () => {
  const { state, failed, tries } = kept();
  await tries(0);
  state.passedMs = 180 * 86_400_000 - 60_000;
  assert.deepEqual([await tries(30_000), failed], [1, []]);
  assert.deepEqual([await tries(30_000), failed], [1, ["the serving certificate is to be renewed"]]);
});

test("the end ends the registering, also when an attempt fails then, without a word", async () => {
  const { ending, registered, clock, lines, tries, state } = kept();
  await tries(0);
  state.failure = new Error("aborted");
  await tries(29_999);
  ending.abort(new Error("the part ends"));
  await registered.ended;
  assert.deepEqual([clock.waiting, lines], [0, ["Serving the metrics API"]]);
  const during = kept();
  const attempt = Promise.withResolvers<void>();
  during.state.attempt = attempt.promise;
  await during.tries(30_000);
  during.ending.abort(new Error("the part ends"));
  attempt.reject(new Error("aborted"));
  await during.registered.ended;
  assert.deepEqual([during.clock.waiting, during.lines], [0, ["Serving the metrics API"]]);
});
