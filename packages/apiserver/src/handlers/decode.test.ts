/** What is made of a body, and what the audit event shows of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { GroupVersionKind } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { checkName, decodeBody, decodeObject, dedupOwnerReferences, matchNamespace } from "./decode.ts";
import type { Call } from "./env.ts";

const path = "/api/v1/namespaces/web/configmaps";
const configMap = { group: "", version: "v1", kind: "ConfigMap" };
const scale = { group: "autoscaling", version: "v1", kind: "Scale" };

type WithData = KubeObject & { data?: Record<string, string> };
const setDefault = (object: KubeObject): void => {
  (object as WithData).data ??= { by: "default" };
};

/** Decodes a body. @returns the object, and the JSON that the audit event was given */
async function decoding(
  body: object,
  {
    kind = configMap,
    expected = kind,
    custom = false,
    recordsRequest = true,
    version = { defaults: setDefault },
  }: { kind?: GroupVersionKind; expected?: GroupVersionKind; custom?: boolean; recordsRequest?: boolean; version?: object } = {},
) {
  const exchange = new LoopbackExchange({ method: "POST", path, headers: {}, body: "" });
  const ctx = new ServerRequest(exchange, parseRequestInfo("POST", path), 0, false);
  let recorded = "";
  const requestObject = (_object: unknown, json: () => Buffer | string): void => {
    recorded = json().toString();
  };
  ctx.audit = { recordsRequest, requestObject } as never;
  const call = {
    env: { gates: { validatesFields: true }, services: { turns: new Turns() } },
    served: { definition: { custom }, kind, version: { version: "v1", ...version } },
    ctx,
  } as unknown as Call;
  const object = await decodeBody(call, Buffer.from(JSON.stringify(body)), "application/json", expected);
  return { object: object as WithData, recorded };
}

const aMap = () => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } });

for (const [how, version] of Object.entries({
  "at once": { defaults: setDefault },
  "in steps": {
    defaults: () => assert.fail("the defaults are set in steps"),
    *defaultsInSteps(object: KubeObject) {
      yield;
      setDefault(object);
    },
  },
})) {
  test(`the audit event shows an object with its defaults, set ${how}, which the object itself does not have yet`, async () => {
    const { object, recorded } = await decoding(aMap(), { version });
    assert.deepEqual(JSON.parse(recorded).data, { by: "default" });
    assert.equal(object.data, undefined);
  });
}

test("the audit event shows an object of a subresource's kind without the defaults of the resource, and nothing where bodies are not recorded", async () => {
  const body = { apiVersion: "autoscaling/v1", kind: "Scale", metadata: { name: "a" } };
  assert.equal(JSON.parse((await decoding(body, { expected: scale })).recorded).data, undefined);
  assert.equal((await decoding(aMap(), { recordsRequest: false })).recorded, "");
});

const event = { group: "", version: "v1", kind: "Event" };
const scaler = { group: "autoscaling", version: "v1", kind: "HorizontalPodAutoscaler" };
const thing = { group: "x.io", version: "v1", kind: "Thing" };

for (const { what, apiVersion, kind, of, code, text } of [
  {
    ...{ what: "another kind", apiVersion: "v1", kind: "Secret", of: configMap, code: 400 },
    text: /^Secret in version "v1" cannot be handled as a ConfigMap/,
  },
  {
    ...{ what: "the same version of another group", apiVersion: "events.k8s.io/v1", kind: "Event", of: event, code: 400 },
    text: /^the API version in the data \(events.k8s.io\/v1\) does not match the expected API version \(v1\)$/,
  },
  {
    ...{ what: "another version", apiVersion: "autoscaling/v2", kind: scaler.kind, of: scaler, code: 400 },
    text: /^the API version in the data \(autoscaling\/v2\) does not match the expected API version \(autoscaling\/v1\)$/,
  },
  {
    ...{ what: "another kind, as a custom resource,", apiVersion: "x.io/v1", kind: "Other", of: thing, code: 422 },
    text: /^Other.x.io "a" is invalid: kind: Invalid value: "Other": must be Thing$/,
  },
]) {
  test(`an object of ${what} is refused`, async () => {
    const body = { apiVersion, kind, metadata: { name: "a" } };
    await assert.rejects(
      decoding(body, { kind: of, custom: of === thing }),
      ({ code: found, message }: Error & { code: number }) => {
        assert.equal(found, code);
        assert.match(message, text);
        return true;
      },
    );
  });
}

for (const { of, namespace, requested, want } of [
  { of: "a cluster-scoped object", namespace: "web", requested: "", want: undefined },
  { of: "an object without a namespace", namespace: undefined, requested: "web", want: "web" },
  { of: "an object with the namespace of the request", namespace: "web", requested: "web", want: "web" },
]) {
  test(`${of} ${want === undefined ? "loses its namespace" : "has the namespace of the request"}`, () => {
    const metadata = { name: "a", ...(namespace !== undefined && { namespace }) };
    matchNamespace({ metadata }, requested);
    assert.deepEqual(metadata, { name: "a", ...(want !== undefined && { namespace: want }) });
  });
}

test("an object of another namespace is refused", () => {
  const object = { metadata: { name: "a", namespace: "other" } };
  assert.throws(() => matchNamespace(object, "web"), { code: 400, message: /does not match the namespace sent on the request/ });
});

test("owners that are sent repeatedly are one before admission, and the client is warned", async () => {
  const owner = { apiVersion: "v1", kind: "Node", name: "n", uid: "1" };
  const exchange = new LoopbackExchange({ method: "POST", path, headers: {}, body: "" });
  const warnings: string[] = [];
  const ctx = Object.assign(new ServerRequest(exchange, parseRequestInfo("POST", path), 0, false), {
    warn: (text: string) => void warnings.push(text),
  });
  const call = {
    env: { gates: { validatesFields: true }, services: { turns: new Turns() } },
    served: { definition: {}, kind: configMap, hubKind: configMap, version: { version: "v1" } },
    ...{ ctx, name: "", namespace: "web" },
  } as unknown as Call;
  const body = { ...aMap(), metadata: { name: "a", ownerReferences: [owner, owner, { ...owner, uid: "2" }] } };
  const { metadata } = await decodeObject(call, Buffer.from(JSON.stringify(body)), "application/json", "Warn");
  assert.deepEqual([metadata.ownerReferences, metadata.namespace], [[owner, { ...owner, uid: "2" }], "web"]);
  assert.match(warnings.join(), /^\.metadata\.ownerReferences contains duplicate entries; .*duplicate UID\(s\) observed: 1$/);
});

for (const { name, metadata, want } of [
  { name: "the same name and namespace", metadata: { name: "a", namespace: "web" } },
  { name: "no namespace", metadata: { name: "a" } },
  {
    name: "no name",
    metadata: { namespace: "web" },
    want: "the name of the object (a based on URL) was undeterminable: name must be provided",
  },
  {
    name: "another name",
    metadata: { name: "b", namespace: "other" },
    want: "the name of the object (b) does not match the name on the URL (a)",
  },
  {
    name: "another namespace",
    metadata: { name: "a", namespace: "other" },
    want: "the namespace of the object (other) does not match the namespace on the request (web)",
  },
]) {
  test(`the object of a PUT has ${name}`, () => {
    const check = () => checkName({ metadata }, "a", "web");
    if (want === undefined) check();
    else assert.throws(check, { code: 400, message: want });
  });
}

test("a cluster-scoped object is not asked for its namespace", () => {
  assert.doesNotThrow(() => checkName({ metadata: { name: "a", namespace: "web" } }, "a", ""));
});

const node = { apiVersion: "v1", kind: "Node", name: "n", uid: "1" };
for (const { name, references, after = false, left, repeated } of [
  { name: "two that are the same", references: [node, { ...node }], left: [node], repeated: "1" },
  { name: "two of one UID that differ in what they say", references: [node, { ...node, controller: true }] },
  { name: "two of one UID that block and do not", references: [node, { ...node, blockOwnerDeletion: true }] },
  { name: "two of one UID with other names", references: [node, { ...node, name: "m" }] },
  {
    ...{ name: "some that are repeated often, after admission", after: true },
    references: [node, { ...node, uid: "2" }, node, { ...node, uid: "2" }, node],
    ...{ left: [node, { ...node, uid: "2" }], repeated: "1, 2" },
  },
  { name: "one", references: [node] },
]) {
  test(`of owners, ${name}: ${left === undefined ? "all stay" : "each is there once"}`, () => {
    const warnings: string[] = [];
    const object = { metadata: { name: "a", ownerReferences: references } };
    dedupOwnerReferences({ ctx: { warn: (text: string) => void warnings.push(text) } } as unknown as Call, object, after);
    assert.deepEqual(object.metadata.ownerReferences, left ?? references);
    const head = `.metadata.ownerReferences contains duplicate entries${after ? " after mutating admission happens" : ""}; `;
    const text = `${head}API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${repeated}`;
    assert.deepEqual(warnings, repeated === undefined ? [] : [text]);
  });
}
