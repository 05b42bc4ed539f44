import assert from "node:assert/strict";
import { test } from "node:test";
import type { ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import { internalError, notFound, StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Attributes } from "../authorization/authorizer.ts";
import { newServedResources } from "../handlers/served-resources.ts";
import type { RegistryStore, ResourceDefinition } from "../registry/generic/resource.ts";
import type { Entry, ReadOptions } from "../storage/storage.ts";
import { RightsReader } from "./rights-reader.ts";

const definitionOf = (resource: string, kind: string, namespaced = true, group = "", hubGroup?: string) =>
  ({
    group,
    resource,
    kind,
    namespaced,
    hub: "v1",
    singular: kind.toLowerCase(),
    ...(hubGroup !== undefined && { hubGroup }),
  }) as unknown as ResourceDefinition;
const pods = definitionOf("pods", "Pod");
const nodes = definitionOf("nodes", "Node", false);
const events = definitionOf("events", "Event");
const v1 = { version: "v1" };

const anEvent = (name: string, involvedObject: object, lastTimestamp: string) => ({
  metadata: { name, namespace: "a" },
  involvedObject,
  lastTimestamp,
});

/** A reader of a user with `rights`, such as `get pods a/web`; records what was authorized, and what the store was asked for. */
function aReader(rights: readonly string[], objects: Record<string, KubeObject[]> = {}, signal = new AbortController().signal) {
  const [authorized, read]: [string[], string[]] = [[], []];
  const storeOf = (resource: string): RegistryStore =>
    ({
      async get(namespace: string, name: string, { minimumRevision }: ReadOptions) {
        read.push(`${resource} ${namespace}/${name} ${minimumRevision ?? "present"}`);
        if (name === "broken") throw internalError(new Error("broken"));
        const found = objects[resource]?.find(({ metadata }) => metadata.name === name);
        if (found === undefined) throw notFound({ group: "", resource }, name);
        return { object: () => found };
      },
      async list(namespace: string) {
        read.push(`${resource} ${namespace}/`);
        return { entries: (objects[resource] ?? []).map((object) => ({ object: () => object }) as Entry), revision: 1 };
      },
    }) as unknown as RegistryStore;
  const resources = newServedResources();
  for (const definition of [pods, nodes]) resources.add(definition, v1, storeOf(definition.resource));
  const ofEvents = storeOf("events");
  resources.add(events, v1, ofEvents);
  resources.add(definitionOf("events", "Event", true, "events.k8s.io", ""), v1, ofEvents);
  resources.add(definitionOf("tokenreviews", "TokenReview", false, "authentication.k8s.io"), v1, undefined);
  const reader = new RightsReader({
    resources,
    authorize({ verb, resource, namespace, name }: Attributes) {
      const what = `${verb} ${resource} ${namespace}/${name}`;
      authorized.push(what);
      return { decision: rights.includes(what) ? "allow" : "no-opinion" };
    },
    user: { name: "jane", groups: [] },
    turns: new Turns(),
    signal,
    now: 0,
  });
  return { reader, authorized, read };
}

const aPod = (name: string) => ({ metadata: { name, namespace: "a", uid: `uid-${name}` } });

test("an object is read with the right to it alone, which is asked for once: another name is hidden, whether it exists or not", async () => {
  const { reader, authorized, read } = aReader(["get pods a/mine"], { pods: [aPod("mine"), aPod("other")] });
  for (let i = 0; i < 2; i++) assert.deepEqual(await reader.get("pods", "", "a", "mine"), aPod("mine"));
  assert.deepEqual(await Promise.all(["other", "none"].map((name) => reader.get("pods", "", "a", name))), ["hidden", "hidden"]);
  assert.equal(await reader.get("pods", "", "b", "mine"), "hidden");
  assert.deepEqual(authorized, ["get pods a/mine", "get pods a/other", "get pods a/none", "get pods b/mine"]);
  assert.deepEqual(read, ["pods a/mine present", "pods a/mine 0"], "only the requested object is read up to date");
});

test("a list is read with the right to list, in the namespace; that of a resource without namespaces in none", async () => {
  const { reader, authorized } = aReader(["list pods a/", "list nodes /", "get nodes /n"], {
    pods: [aPod("x")],
    nodes: [aPod("n")],
  });
  assert.equal((await reader.list("pods", "", "a"))?.length, 1);
  assert.equal(await reader.list("pods", "", "b"), undefined);
  assert.equal((await reader.list("nodes", "", "a"))?.length, 1);
  assert.deepEqual(await reader.get("nodes", "", "a", "n"), aPod("n"));
  assert.deepEqual(authorized, ["list pods a/", "list pods b/", "list nodes /", "get nodes /n"]);
});

test("of a list the first 500 objects are read", async () => {
  const { reader } = aReader(["list pods a/"], { pods: Array.from({ length: 501 }, (_, at) => aPod(`p${at}`)) });
  const found = await reader.list("pods", "", "a");
  assert.deepEqual([found?.length, found?.at(-1)?.metadata.name], [500, "p499"]);
});

test("what is not stored or not there is missing, for who may read it; other errors are passed on", async () => {
  const { reader } = aReader(["get pods a/none", "get pods a/broken"]);
  assert.equal(await reader.get("pods", "", "a", "none"), "missing");
  assert.equal(await reader.get("tokenreviews", "authentication.k8s.io", "", "x"), "missing");
  assert.deepEqual(await reader.list("tokenreviews", "authentication.k8s.io", ""), []);
  await assert.rejects(reader.get("pods", "", "a", "broken"), (err) => err instanceof StatusError && err.code === 500);
});

test("after 400 reads the others are hidden, and a request that has ended reads nothing more", async () => {
  const request = new AbortController();
  const { reader, read } = aReader(["get pods a/x", "list pods a/"], { pods: [aPod("x")] }, request.signal);
  for (let i = 0; i < 400; i++) assert.deepEqual(await reader.get("pods", "", "a", "x"), aPod("x"));
  assert.equal(await reader.get("pods", "", "a", "x"), "hidden");
  assert.equal(await reader.list("pods", "", "a"), undefined);
  assert.equal(read.length, 400);
  request.abort(new Error("gone"));
  await assert.rejects(reader.get("pods", "", "a", "x"), /gone/);
});

test("events are those of the object's kind, name and uid, the latest first; of a node whatever uid they name", async () => {
  const about = (kind: string, name: string, uid?: string) => ({ kind, name, ...(uid !== undefined && { uid }) });
  const [early, late] = ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"];
  const { reader, read } = aReader(["list events a/", "list events default/"], {
    events: [
      anEvent("early", about("Pod", "web", "uid-web"), early),
      anEvent("late", about("Pod", "web"), late),
      anEvent("earlier-pod", about("Pod", "web", "uid-old"), late),
      anEvent("other", about("Pod", "other"), late),
      anEvent("set", about("ReplicaSet", "web", "uid-web"), late),
      anEvent("node", about("Node", "n", "n"), late),
    ],
  });
  const ref = (kind: string, name: string, namespace: string): ObjectRef => ({
    ...{ group: "", resource: `${kind.toLowerCase()}s`, kind, namespace, name },
    uid: `uid-${name}`,
  });
  const names = async (of: ObjectRef) => (await reader.events(of)).map(({ metadata }) => metadata.name);
  assert.deepEqual(await names(ref("Pod", "web", "a")), ["late", "early"]);
  assert.deepEqual(await names(ref("Pod", "other", "a")), ["other"]);
  assert.deepEqual(await names(ref("Node", "n", "")), ["node"]);
  assert.deepEqual(await names(ref("Pod", "web", "b")), [], "without the right to list events there");
  assert.deepEqual(read, ["events a/", "events default/"], "each namespace is read once");
});

test("the time of an event is when it was last seen, of a series, of itself, or when it was written", async () => {
  const at = (minute: number): string => `2026-01-01T00:0${minute}:00Z`;
  const event = (name: string, times: object) => ({
    metadata: { name, namespace: "a", creationTimestamp: at(1) },
    involvedObject: { kind: "Pod", name: "web" },
    ...times,
  });
  const { reader } = aReader(["list events a/"], {
    events: [
      event("created", {}),
      event("micro", { eventTime: at(2), lastTimestamp: null }),
      event("last", { eventTime: at(1), lastTimestamp: at(3) }),
      event("series", { lastTimestamp: at(1), series: { count: 2, lastObservedTime: at(4) } }),
    ],
  });
  const ref = { group: "", resource: "pods", kind: "Pod", namespace: "a", name: "web", uid: "u" };
  const names = (await reader.events(ref)).map(({ metadata }) => metadata.name);
  assert.deepEqual(names, ["series", "last", "micro", "created"]);
});

test("a reference has the kind of its resource, that of the object where it is not served", () => {
  const { reader } = aReader([]);
  const object = { kind: "Thing", metadata: { name: "a", namespace: "n", uid: "u" } };
  const rest = { namespace: "n", name: "a", uid: "u" };
  assert.deepEqual(reader.refOf(object, "pods", ""), { group: "", resource: "pods", kind: "Pod", ...rest });
  assert.deepEqual(reader.refOf(object, "things", "x"), { group: "x", resource: "things", kind: "Thing", ...rest });
  assert.deepEqual(reader.refOf({ metadata: {} }, "things", "x"), {
    ...{ group: "x", resource: "things", kind: "", namespace: "", name: "", uid: "" },
  });
});

test("all of several objects may be read only when each may be, and is served", async () => {
  const { reader } = aReader(["get pods a/one", "get pods a/two"]);
  const of = (name: string, resource = "pods"): ObjectRef => ({ group: "", resource, kind: "", namespace: "a", name, uid: "" });
  assert.equal(await reader.mayReadAll([of("one"), of("two")]), true);
  assert.equal(await reader.mayReadAll([of("one"), of("three")]), false);
  assert.equal(await reader.mayReadAll([of("one"), of("one", "widgets")]), false);
});

test("resources with one store count once, under the name of its group", () => {
  const { reader } = aReader([]);
  assert.deepEqual(reader.namespacedResources(), [
    { resource: "pods", group: "" },
    { resource: "events", group: "" },
  ]);
  assert.deepEqual(reader.resourceOf("v1", "Node"), { resource: "nodes", group: "" });
  assert.equal(reader.resourceOf("apps/v1", "Node"), undefined);
  assert.equal(reader.resourceOf("authentication.k8s.io/v1", "TokenReview"), undefined, "nothing of it is stored");
});
