/** Which handler a path and method lead to, with stores that only say what they are asked. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { ByteShare } from "@coxswain/apimachinery/process/memory/byte-share";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { LoopbackExchange } from "../loopback/exchange.ts";
import type { RegistryStore, ResourceDefinition, ResourceVersionDefinition } from "../registry/generic/resource.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import type { WatchRequest } from "../storage/storage.ts";
import { newRouter } from "./router.ts";
import { newServedResources } from "./served-resources.ts";

const verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const asked = (what: string) => async (): Promise<never> => {
  throw new Error(what);
};
const store = {
  storage: {},
  get: (namespace: string, name: string) => asked(`get ${namespace}/${name}`)(),
  list: (namespace: string) => asked(`list ${namespace}`)(),
  watch: (namespace: string, { fields, revision }: WatchRequest) =>
    asked(`watch ${namespace}/${(fields?.terms ?? []).map(({ value }) => value)} from ${revision}`)(),
} as unknown as RegistryStore;

/** Another store for each strategy, which only says whose it is. */
const views = {
  ...store,
  withStrategy: ({ of }: { of: string }) => ({ update: asked(`an update of the ${of}`) }),
} as unknown as RegistryStore;

const definitionOf = (group: string, resource: string, more: object = {}): ResourceDefinition =>
  ({
    ...{
      group,
      resource,
      kind: `${resource}-kind`,
      listKind: `${resource}-list`,
      namespaced: true,
      verbs,
      hub: "v1",
      versions: [],
    },
    table: { columns: [], cells: () => [] },
    ...more,
  }) as unknown as ResourceDefinition;

const proxied = { kind: "ProxyOptions", verbs: ["get", "create", "update", "patch", "delete"] };
const connect = (what: string) => ({ type: "connect", connect: async (_: unknown, rest: string) => asked(`${what} ${rest}`)() });
const review = { kind: "Review", verbs: ["create"], handler: { type: "object", create: asked("review") } };
const subresources = {
  proxy: { ...proxied, handler: connect("proxy") },
  log: { kind: "LogOptions", verbs: ["get"], handler: connect("log") },
  ...Object.fromEntries(
    [
      ["bind", undefined],
      ["rebind", 202],
    ].map(([name, code]) => [
      name,
      {
        ...{ kind: "Binding", kindGroupVersion: { group: "", version: "v1" }, verbs: ["create"] },
        handler: {
          type: "object",
          create: async () => ({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", ...(code && { code }) }),
        },
      },
    ]),
  ),
};

/** @returns what the request leads to: the question to a store, or the code of the answer */
async function route(
  method: string,
  path: string,
  { gates = () => true, body = "" }: { gates?: (gate: string) => boolean; body?: string } = {},
) {
  const resources = newServedResources();
  const add = (definition: ResourceDefinition, more: object = {}, served: RegistryStore | undefined = store): void =>
    resources.add(definition, { version: "v1", ...more } as ResourceVersionDefinition, served);
  add(definitionOf("", "namespaces", { namespaced: false, subresources: {} }));
  add(definitionOf("x.io", "namespaces", { namespaced: false }));
  add(definitionOf("x.io", "things", { subresources, statusStrategy: {} }));
  add(definitionOf("x.io", "boxes", { namespaced: false }));
  add(definitionOf("x.io", "reads", { verbs: ["get", "list"] }));
  add(definitionOf("x.io", "creations", { verbs: ["create"] }));
  add(definitionOf("x.io", "reviews", { subresources: { "": review } }), {}, undefined);
  add(definitionOf("x.io", "localreviews", { verbs: ["create"], subresources: { "": review } }), {}, undefined);
  const states = { kind: "State", verbs: ["list"], handler: { type: "object", list: async () => [{ metadata: { name: "s" } }] } };
  add(definitionOf("x.io", "states", { verbs: ["list"], namespaced: false, subresources: { "": states } }), {}, undefined);
  add(definitionOf("x.io", "old", { statusStrategy: {} }), {
    deprecation: "x.io/v1 Old is deprecated in v1.20+, unavailable in v1.25+",
  });
  add(definitionOf("x.io", "ending", { refusal: () => new StatusError({ status: "Failure", code: 418 } as never) }));
  add(definitionOf("custom.io", "widgets", { custom: true }));
  const approval = { kind: "views-kind", verbs: ["update"], handler: { type: "strategy", strategy: { of: "approval" } } };
  add(
    definitionOf("custom.io", "views", { custom: true, statusStrategy: { of: "status" }, subresources: { approval } }),
    {},
    views,
  );
  const metrics = newMetricsRegistry();
  const admission = { mutate: async () => {}, validate: async () => {} };
  const router = newRouter({
    ...{ resources, admission, metrics, log: discardLogger, minRequestTimeoutMs: 1000, documents: new ByteShare(1_000_000) },
    services: { now: () => 0, turns: new Turns(), featureEnabled: gates },
  } as unknown as Parameters<typeof newRouter>[0]);
  const exchange = new LoopbackExchange({ method, path, headers: { "content-type": "application/json" }, body });
  const request = new ServerRequest(exchange, parseRequestInfo(method, path), 0, false);
  const notes: Record<string, string> = {};
  const annotate = (key: string, value: string): void => void Object.assign(notes, { [key]: value });
  request.audit = { annotate, requestObject() {} } as never;
  const ask = (asking = request): Promise<string> =>
    router(asking).then(
      () => String(exchange.status),
      (err: Error) => (err instanceof StatusError ? `${err.code} ${err.message}`.trim() : err.message),
    );
  const outcome = await ask();
  /** Another request to the same server. */
  const routeNext = (otherPath: string): Promise<string> => {
    const other = new LoopbackExchange({ method, path: otherPath, headers: { "content-type": "application/json" }, body });
    return ask(new ServerRequest(other, parseRequestInfo(method, otherPath), 0, false));
  };
  return { outcome, notes, metrics, exchange, routeNext };
}

const things = "/apis/x.io/v1/namespaces/a/things";
const watched = "/apis/x.io/v1/watch/namespaces/a/things";
const notFound = /^404 /;

for (const [method, path, want] of [
  ["GET", `${things}/b`, "get a/b"],
  ["GET", things, "list a"],
  ["GET", "/apis/x.io/v1/things", "list "],
  ["GET", "/apis/x.io/v1/things/b", notFound],
  ["POST", "/apis/x.io/v1/things", /^405/],
  ["DELETE", "/apis/x.io/v1/things", /^405/],
  ["OPTIONS", things, /^405/],
  ["GET", "/apis/x.io/v1/boxes/b", "get /b"],
  ["GET", "/apis/x.io/v1/namespaces/a/boxes/b", notFound],
  ["GET", "/apis/x.io/v1/namespaces/a/boxes", notFound],
  ["GET", "/api/v1/namespaces/a", "get /a"],
  ["GET", "/apis/x.io/v1/namespaces/a", notFound],
  ["POST", "/apis/x.io/v1/namespaces/a/reads", /^405/],
  ["DELETE", "/apis/x.io/v1/namespaces/a/reads/b", /^405/],
  ["GET", "/apis/x.io/v1/namespaces/a/creations", /^405/],
  ["GET", "/apis/x.io/v1/creations", notFound],
  ["GET", "/apis/x.io/v1/namespaces/a/none/b", notFound],
  ["GET", "/apis/x.io/v2/namespaces/a/things/b", notFound],
  ["GET", "/apis/custom.io/v1/namespaces/a/none/b", notFound],
  ["GET", "/apis/custom.io/v2/namespaces/a/widgets/b", "404"],
  ["GET", "/apis/none.io/v1/namespaces/a/widgets/b", "404"],
  ["GET", "//apis/x.io/v1/namespaces/a/things/b", "404"],
  ["GET", `${things}/b/status`, "get a/b"],
  ["GET", `${things}/b/status/more`, notFound],
  ["GET", `${things}/b/constructor`, notFound],
  ["GET", "/apis/custom.io/v1/namespaces/a/widgets/b/none", /^404 widgets.custom.io "b" not found/],
  ["DELETE", `${things}/b/status`, /^405/],
  ["GET", `${things}/b/log`, "log "],
  ["POST", `${things}/b/log`, /^405/],
  ["GET", `${things}/b/log/more`, notFound],
  ["GET", `${things}/b/proxy/c%2520d/e:f/`, "proxy /c%2520d/e:f/"],
  ["GET", `${things}/b/proxy/$a:@+%2F&=,;`, "proxy /$a:@+/%26%3D%2C%3B"],
  ["OPTIONS", `${things}/b/proxy/c`, "proxy /c"],
  ["DELETE", `${things}/b/proxy/`, "proxy /"],
  ["TRACE", `${things}/b/proxy/c`, /^405/],
  ["GET", "/apis/x.io/v1/namespaces/a/ending/b", "418"],
  ["GET", watched, "watch a/ from undefined"],
  ["GET", `${watched}/b?resourceVersion=7`, "watch a/b from 7"],
  ["GET", `${watched}/b?fieldSelector=metadata.name%3Db`, "watch a/b from undefined"],
  ["GET", `${watched}/b?fieldSelector=metadata.name%3Db,metadata.namespace!%3Dz`, "watch a/b,z from undefined"],
  ["GET", `${watched}/b?fieldSelector=metadata.namespace!%3Dz`, /^400 fieldSelector metadata.name doesn't match requested name/],
  ["GET", `${watched}/b?fieldSelector=metadata.name%3Dc`, /^400 fieldSelector metadata.name doesn't match requested name/],
  ["GET", `${watched}?fieldSelector=other%3Dc`, /^400 /],
  ["POST", watched, /^405/],
  ["GET", `${watched}/b/status`, notFound],
  ["GET", "/apis/x.io/v1/watch/namespaces/a/reads", notFound],
  ["GET", `${things}/b?watch=1`, "get a/b"],
  ["GET", `${things}?watch=1`, "watch a/ from undefined"],
  ["POST", "/apis/x.io/v1/namespaces/a/reviews/b", /^40[45]/],
  ["GET", "/apis/x.io/v1/namespaces/a/reviews", /^405/],
  ["DELETE", "/apis/x.io/v1/namespaces/a/reviews", /^405/],
  ["POST", "/apis/x.io/v1/namespaces/a/localreviews", /^400 the object provided is unrecognized/],
  ["POST", "/apis/x.io/v1/localreviews", notFound],
  ["GET", "/apis/x.io/v1/states", "200"],
  ["GET", "/apis/x.io/v1/states?fieldSelector=metadata.name%3Dt", "200"],
  ["GET", "/apis/x.io/v1/states?fieldSelector=other%3Dc", /^400 .*field selector/],
  ["GET", "/apis/x.io/v1/states?watch=1", /^405 watch is not supported/],
  ["DELETE", `${things}?fieldSelector=other%3Dc`, /^400 .*field selector/],
] as [string, string, string | RegExp][]) {
  test(`${method} ${path} leads to ${want}`, async () => {
    const { outcome } = await route(method, path);
    if (typeof want === "string") assert.equal(outcome, want);
    else assert.match(outcome, want);
  });
}

test("without the gate DryRun only requests that write are refused for it", async () => {
  const gates = (gate: string) => gate !== "DryRun";
  assert.equal((await route("DELETE", `${things}/b?dryRun=All`, { gates })).outcome, "400 the dryRun feature is disabled");
  assert.equal((await route("GET", `${things}/b?dryRun=All`, { gates })).outcome, "get a/b");
});

test("a deprecated version is noted in the audit event and counted with its subresource", async () => {
  const { notes, metrics } = await route("GET", "/apis/x.io/v1/namespaces/a/old/b/status");
  assert.deepEqual(notes, { "k8s.io/deprecated": "true", "k8s.io/removed-release": "1.25" });
  assert.match(
    await metrics.render(),
    /^apiserver_requested_deprecated_apis\{group="x.io",version="v1",resource="old",subresource="status",removed_release="1.25"\} 1$/m,
  );
  assert.deepEqual((await route("GET", `${things}/b`)).notes, {});
});

for (const { subresource, code } of [
  { subresource: "bind", code: 201 },
  { subresource: "rebind", code: 202 },
]) {
  test(`the Status of a subresource that says ${code === 201 ? "no code has that of the answer" : "its code keeps it"}`, async () => {
    const body = JSON.stringify({ metadata: { name: "b" }, target: { name: "n" } });
    const { outcome, exchange } = await route("POST", `${things}/b/${subresource}`, { body });
    assert.equal(outcome, "201");
    const answer = await exchange.response;
    assert.equal(JSON.parse(Buffer.concat(await answer.body.toArray()).toString()).code, code);
  });
}

test("an object of a subresource in another namespace than that of the path is refused", async () => {
  const body = JSON.stringify({ metadata: { name: "b", namespace: "z" }, target: { name: "n" } });
  assert.match(
    (await route("POST", `${things}/b/bind`, { body })).outcome,
    /^400 the namespace of the provided object does not match/,
  );
});

test("each subresource of one resource is written by its own strategy", async () => {
  const path = "/apis/custom.io/v1/namespaces/a/views/b";
  const body = JSON.stringify({ apiVersion: "custom.io/v1", kind: "views-kind", metadata: { name: "b", namespace: "a" } });
  const { outcome, routeNext } = await route("PUT", `${path}/status`, { body });
  assert.deepEqual(
    [outcome, await routeNext(`${path}/approval`), await routeNext(`${path}/status`)],
    ["an update of the status", "an update of the approval", "an update of the status"],
  );
});
