/** Managed fields that cannot be computed, or that admission makes invalid. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject, ManagedFieldsEntry } from "@coxswain/apimachinery/objects/meta/types";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import type { ResourceDefinition, ResourceVersionDefinition } from "../registry/generic/resource.ts";
import { guardEntries } from "./admission.ts";
import { fromHub } from "./convert.ts";
import type { Call } from "./env.ts";
import { managerName, trackCreated, trackFields } from "./managed-fields.ts";
import { newServedResources, type ServedResource } from "./served-resources.ts";

const entry: ManagedFieldsEntry = {
  manager: "m",
  operation: "Update",
  apiVersion: "v1",
  time: "2022-01-01T00:00:00Z",
  fieldsType: "FieldsV1",
  fieldsV1: { "f:data": {} },
};

function aCall({
  tracksFields = true,
  userAgent = "",
  run = (): unknown => [entry],
  signal = new AbortController().signal,
} = {}) {
  const [warnings, errors]: [string[], unknown[]] = [[], []];
  const call = {
    env: {
      gates: { tracksFields },
      services: { now: () => 0, turns: { run } },
      log: { error: (_text: string, err: unknown) => errors.push(err) },
    },
    served: {
      isHub: true,
      version: {},
      definition: { resource: "configmaps" },
      fieldManagers: { getOrInsertComputed: () => ({ update: () => undefined }) },
    },
    ctx: {
      exchange: { headers: { "user-agent": userAgent } },
      warn: (text: string) => warnings.push(text),
      throwIfAborted: () => signal.throwIfAborted(),
    },
    name: "a",
    subresource: "",
  } as unknown as Call;
  return { call, warnings, errors };
}
const objectWith = (managedFields?: ManagedFieldsEntry[]) => ({ metadata: { name: "a", managedFields } }) as KubeObject;

for (const { userAgent, want } of [
  { userAgent: "kubectl/v1.23 (linux)", want: "kubectl" },
  { userAgent: `${"m".repeat(128)}/1`, want: "m".repeat(128) },
  { userAgent: `${"m".repeat(129)}/1`, want: "m".repeat(128) },
  { userAgent: `${"ö".repeat(70)}/1`, want: "ö".repeat(64) },
  { userAgent: "a\tb", want: "ab" },
]) {
  test(`the manager of a client named ${JSON.stringify(userAgent.slice(0, 20))} is printable and at most 128 bytes`, () => {
    assert.equal(managerName(aCall({ userAgent }).call, ""), want);
    assert.equal(managerName(aCall({ userAgent }).call, "given"), "given");
  });
}

for (const { name, options, wantErrors } of [
  { name: "tracking is off", options: { tracksFields: false }, wantErrors: 0 },
  {
    name: "they cannot be computed",
    options: {
      run() {
        throw new Error("no");
      },
    },
    wantErrors: 1,
  },
  { name: "their computation fails later", options: { run: () => Promise.reject(new Error("no")) }, wantErrors: 1 },
]) {
  test(`the client's own entries are dropped when ${name}`, async () => {
    const { call, errors } = aCall(options);
    const object = await trackFields(call, "m", undefined, objectWith([{ ...entry, manager: "invented" }]));
    assert.ok(!Object.hasOwn(object.metadata, "managedFields"));
    assert.equal(errors.length, wantErrors);
  });
}

for (const { name, run } of [
  { name: "while they are computed", run: (err: Error) => () => Promise.reject(err) },
  { name: "at once", run: (err: Error) => () => assert.fail(err) },
]) {
  test(`a request that ends ${name} does not go on without managed fields`, async () => {
    const gone = new AbortController();
    const reason = new Error("the client has gone");
    gone.abort(reason);
    const { call, errors } = aCall({ run: run(reason), signal: gone.signal });
    await assert.rejects(async () => trackFields(call, "m", undefined, objectWith([entry])), reason);
    assert.deepEqual(errors, []);
  });
}

test("an object that is answered and not stored has fields of the manager in the request, or of its client", async () => {
  const { call } = aCall({ userAgent: "kubectl/v1.23" });
  Object.assign(call.env.services, { turns: new Turns() });
  const review = { group: "authentication.k8s.io", version: "v1", kind: "TokenReview" };
  for (const [given, manager] of [
    ["", "kubectl"],
    ["mine", "mine"],
  ] as const) {
    const object = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", metadata: {}, spec: { token: "t" } };
    const { metadata } = await trackCreated(call, given, review, object);
    hasFields(metadata.managedFields, [{ manager, operation: "Update", fieldsV1: { "f:spec": { "f:token": {} } } }]);
  }
});

const tokenReview = { group: "authentication.k8s.io", version: "v1", kind: "TokenReview" };
for (const { name, options, kind = tokenReview, wantErrors } of [
  { name: "tracking is off", options: { tracksFields: false }, wantErrors: 0 },
  { name: "its kind is not known", options: {}, kind: { ...tokenReview, kind: "Unknown" }, wantErrors: 0 },
  { name: "they cannot be computed", options: { run: () => Promise.reject(new Error("no")) }, wantErrors: 1 },
]) {
  test(`an object that is answered and not stored has no managed fields, also not the client's, when ${name}`, async () => {
    const { call, errors } = aCall(options);
    const object = await trackCreated(call, "m", kind, objectWith([{ ...entry, manager: "invented" }]));
    assert.ok(!Object.hasOwn(object.metadata, "managedFields"));
    assert.equal(errors.length, wantErrors);
  });
}

test("computed entries replace the client's", async () => {
  const object = await trackFields(aCall().call, "m", undefined, objectWith([{ ...entry, manager: "invented" }]));
  assert.deepEqual(object.metadata.managedFields, [entry]);
});

for (const { name, before, after, want, warned } of [
  { name: "leaves them", before: [entry], after: "same", want: [entry], warned: 0 },
  {
    name: "changes them validly",
    before: [entry],
    after: [{ ...entry, manager: "n" }],
    want: [{ ...entry, manager: "n" }],
    warned: 0,
  },
  { name: "breaks them", before: [entry], after: [{ ...entry, operation: "No" }], want: [entry], warned: 1 },
  { name: "invents broken ones", before: undefined, after: [{ ...entry, operation: "No" }], want: undefined, warned: 1 },
] as const) {
  test(`managed fields after an admission that ${name}`, async () => {
    const { call, warnings } = aCall();
    const object = objectWith(before as ManagedFieldsEntry[] | undefined);
    if (before === undefined) delete object.metadata.managedFields;
    await guardEntries(call, object, async () => {
      if (after !== "same") object.metadata.managedFields = after as unknown as ManagedFieldsEntry[];
    });
    assert.deepEqual(object.metadata.managedFields, want);
    assert.equal(Object.hasOwn(object.metadata, "managedFields"), want !== undefined);
    assert.equal(warnings.length, warned);
  });
}

test("an object in a served version shares neither its entries nor its fields with the stored one", () => {
  const hub = { ...objectWith([entry]), data: { a: { b: 1 } } };
  const served = { version: { version: "v1" }, kind: { group: "", version: "v1", kind: "ConfigMap" } } as ServedResource;
  const shown = fromHub(served, hub) as typeof hub;
  assert.deepEqual(shown.metadata, hub.metadata);
  shown.metadata.managedFields![0]!.manager = "changed";
  shown.metadata.managedFields!.push(entry);
  shown.data.a.b = 2;
  assert.deepEqual([hub.metadata.managedFields, hub.data], [[{ ...entry, manager: "m" }], { a: { b: 1 } }]);
});

for (const { what, apiVersion, kept } of [
  { what: "another version of the resource", apiVersion: "a.io/v2", kept: true },
  { what: "a resource of the same name in another group", apiVersion: "b.io/v1", kept: false },
  { what: "a version that there is not", apiVersion: "a.io/v3", kept: false },
]) {
  test(`fields that a manager owns by ${what} ${kept ? "stay its own" : "are given up"}`, async () => {
    const resources = newServedResources();
    for (const [group, version] of [
      ["a.io", "v1"],
      ["a.io", "v2"],
      ["b.io", "v1"],
    ] as const) {
      const definition = { group, resource: "things", kind: "Thing", hub: "v1", versions: [], custom: true };
      resources.add(definition as unknown as ResourceDefinition, { version } as ResourceVersionDefinition, undefined);
    }
    const { call, errors } = aCall();
    Object.assign(call.env, { resources });
    Object.assign(call.env.services, { turns: new Turns() });
    Object.assign(call, { served: resources.find("a.io", "v1", "things") });
    const object = (a: number) =>
      ({ apiVersion: "a.io/v1", kind: "Thing", metadata: { name: "a" }, spec: { a, b: 1 } }) as KubeObject;
    const before = { ...entry, manager: "before", apiVersion, fieldsV1: { "f:spec": { "f:b": {} } } };
    const live = object(1);
    live.metadata.managedFields = [before];
    const next = object(2);
    next.metadata.managedFields = [before];
    const { managedFields = [] } = (await trackFields(call, "me", live, next)).metadata;
    assert.deepEqual(managedFields.map(({ manager }) => manager).sort(), kept ? ["before", "me"] : ["me"]);
    assert.deepEqual(errors, []);
  });
}
