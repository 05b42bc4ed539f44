/** Both stages of admission see the requests whose objects are not written by the generic create and update. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import type { AdmissionAttributes } from "../admission/plugin.ts";
import { LoopbackExchange } from "../loopback/exchange.ts";
import type { SubresourceHandler } from "../registry/generic/resource.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { connect } from "./connect.ts";
import { remove } from "./delete.ts";
import { deleteCollection } from "./delete-collection.ts";
import type { Call } from "./env.ts";
import { handlerGates } from "./env.ts";

const old = { metadata: { name: "a", namespace: "web" } };
const admitted = new Error("the object was admitted");

/** A call whose store asks for admission of one object and then fails. */
function aCall(method: string, path: string, body = "") {
  const stages: string[] = [];
  const seen: AdmissionAttributes[] = [];
  const stage = (name: string) => async (attributes: AdmissionAttributes) => {
    stages.push(name);
    seen.push(attributes);
  };
  const exchange = new LoopbackExchange({ method, path, headers: { "content-type": "application/json" }, body });
  const info = parseRequestInfo(method, path);
  const admits = async (admit: (object: object) => Promise<void>): Promise<never> => {
    await admit(old);
    throw admitted;
  };
  const call = {
    env: {
      admission: { mutate: stage("mutate"), validate: stage("validate") },
      services: { now: () => 0, featureEnabled: () => true },
      gates: handlerGates(() => true),
      nodeProxy: {},
    },
    ctx: new ServerRequest(exchange, info, 0, false),
    served: {
      store: {
        storage: {},
        delete: (_ctx: unknown, _name: string, _options: unknown, admit: (object: object) => Promise<void>) => admits(admit),
        deleteCollection: (_ctx: unknown, _options: unknown, _list: unknown, admit: (object: object) => Promise<void>) =>
          admits(admit),
      },
      definition: { group: "", resource: "configmaps" },
      version: { version: "v1" },
      kind: { group: "", version: "v1", kind: "ConfigMap" },
    },
    ...{ namespace: info.namespace, name: info.name, subresource: info.subresource },
  } as unknown as Call;
  return { call, stages, seen, exchange };
}

const collection = "/api/v1/namespaces/web/configmaps";

for (const { what, handle, path } of [
  { what: "one object", handle: remove, path: `${collection}/a` },
  { what: "a collection", handle: deleteCollection, path: collection },
]) {
  for (const { how, query, body, dryRun } of [
    { how: "a deletion", query: "", body: "", dryRun: false },
    { how: "a dry run by the query", query: "?dryRun=All", body: "", dryRun: true },
    { how: "a dry run by the body", query: "", body: '{"dryRun":["All"]}', dryRun: true },
  ]) {
    test(`both stages of admission see ${how} of ${what} with the stored object`, async () => {
      const { call, stages, seen } = aCall("DELETE", path + query, body);
      await assert.rejects(handle(call), admitted);
      assert.deepEqual(stages, ["mutate", "validate"]);
      for (const attributes of seen) assert.partialDeepStrictEqual(attributes, { operation: "DELETE", oldObject: old, dryRun });
    });
  }
}

for (const { body, want } of [
  { body: { propagationPolicy: "Orphan" }, want: { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: "Orphan" } },
  {
    body: { kind: "DeleteOptions", apiVersion: "meta.k8s.io/v1" },
    want: { kind: "DeleteOptions", apiVersion: "meta.k8s.io/v1" },
  },
]) {
  test(`the audit event of a deletion shows the options ${JSON.stringify(body)}`, async () => {
    const { call } = aCall("DELETE", `${collection}/a`, JSON.stringify(body));
    const shown: unknown[] = [];
    const requestObject = (object: unknown, json: () => Buffer): void => void shown.push(object, JSON.parse(json().toString()));
    Object.assign(call.ctx, { audit: { requestObject, requestPatch() {} } });
    await assert.rejects(remove(call), admitted);
    assert.deepEqual(shown, [undefined, want]);
  });
}

for (const { subresource, want } of [
  { subresource: "exec", want: ["mutate", "validate"] },
  { subresource: "log", want: [] },
]) {
  test(`${want.length > 0 ? "both stages" : "no stage"} of admission sees ${subresource}, before its target is determined`, async () => {
    const { call, stages, seen, exchange } = aCall("GET", `/api/v1/namespaces/web/pods/a/${subresource}?command=ls&command=-l`);
    const handler = {
      type: "connect",
      async connect() {
        assert.deepEqual(stages, want);
        return undefined;
      },
    } as unknown as Extract<SubresourceHandler, { type: "connect" }>;
    await connect(call, handler, { group: "", version: "v1", kind: "PodExecOptions" }, "");
    assert.equal(exchange.status, 204);
    for (const { operation, object } of seen) {
      assert.equal(operation, "CONNECT");
      hasFields(object, { kind: "PodExecOptions", apiVersion: "v1", command: ["ls", "-l"] });
    }
  });
}

for (const { kind, query, rest, want } of [
  { kind: "PodPortForwardOptions", query: "ports=80&ports=443", rest: "", want: { ports: [80, 443] } },
  {
    kind: "PodExecOptions",
    query: "stdin=0&stdout=false&tty&container=c",
    rest: "",
    want: { stdin: false, stdout: false, tty: true, container: "c" },
  },
  { kind: "PodProxyOptions", query: "", rest: "/a/b", want: { path: "/a/b" } },
]) {
  test(`admission sees each value of ${kind} with ?${query}`, async () => {
    const { call, seen } = aCall("GET", `/api/v1/namespaces/web/pods/a/exec?${query}`);
    const handler = { type: "connect", connect: async () => undefined } as unknown as Extract<
      SubresourceHandler,
      { type: "connect" }
    >;
    await connect(call, handler, { group: "", version: "v1", kind }, rest);
    assert.deepEqual(seen[0]?.object, { kind, apiVersion: "v1", metadata: {}, ...want });
  });
}

for (const { what, method = "GET", upgrade, rest = "", query = "?x=1&y", redirected } of [
  { what: "a page without a path", redirected: "/p/proxy/?x=1&y" },
  { what: "a page without a path and query", query: "", redirected: "/p/proxy/" },
  { what: "a page whose query is empty", query: "?", redirected: "/p/proxy/" },
  { what: "a page whose query has question marks", query: "?q=a?b?", redirected: "/p/proxy/?q=a?b?" },
  { what: "the head of a page without a path", method: "HEAD", redirected: "/p/proxy/?x=1&y" },
  { what: "a page with a path", rest: "/a" },
  { what: "an upgrade without a path", upgrade: {} },
  { what: "a write without a path", method: "POST" },
] as { what: string; method?: string; upgrade?: object; rest?: string; query?: string; redirected?: string }[]) {
  test(`${what} is ${redirected === undefined ? "proxied" : `redirected to ${redirected}`}`, async () => {
    const { call } = aCall(method, `/api/v1/namespaces/web/pods/a/proxy${query}`);
    const answers: unknown[] = [];
    const exchange = { method, upgrade, url: `/p/proxy${query}`, respond: (...answer: unknown[]) => void answers.push(answer) };
    const ctx = Object.defineProperty(call.ctx, "exchange", { value: exchange });
    const nodeProxy = { forward: async () => void answers.push("proxied") };
    const handler = { type: "connect", connect: async () => ({ as: "proxy" }) } as unknown as Extract<
      SubresourceHandler,
      { type: "connect" }
    >;
    const env = { ...call.env, nodeProxy } as unknown as Call["env"];
    await connect({ ...call, ctx, env }, handler, { group: "", version: "v1", kind: "PodProxyOptions" }, rest);
    assert.deepEqual(answers, [redirected === undefined ? "proxied" : [301, { location: redirected }]]);
  });
}

test("a connection as a dry run is refused, a log takes no notice", async () => {
  const handler = { type: "connect", connect: async () => undefined } as unknown as Extract<
    SubresourceHandler,
    { type: "connect" }
  >;
  const kind = { group: "", version: "v1", kind: "PodExecOptions" };
  const { call, stages } = aCall("GET", "/api/v1/namespaces/web/pods/a/exec?dryRun=All");
  await assert.rejects(connect(call, handler, kind, ""), /dryRun is not supported/);
  assert.deepEqual(stages, []);
  const log = aCall("GET", "/api/v1/namespaces/web/pods/a/log?dryRun=All");
  await connect(log.call, handler, kind, "");
  assert.equal(log.exchange.status, 204);
});
