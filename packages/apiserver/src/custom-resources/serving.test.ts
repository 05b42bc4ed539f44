import assert from "node:assert/strict";
import { test } from "node:test";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { RegistryStore } from "../registry/generic/resource.ts";
import type { Storage, WatchRequest } from "../storage/storage.ts";
import { unlimitedEntries } from "../storage/testing.ts";
import { WatchQueue } from "../storage/watch-queue.ts";
import { renameOnly } from "./conversion.ts";
import type { CustomResourceDefinition } from "./definitions.ts";
import { newServing } from "./serving.ts";

type Handler = Parameters<SharedInformer<CustomResourceDefinition>["addHandler"]>[0];

const names = { plural: "things", kind: "Thing", listKind: "ThingList", singular: "thing" };
const accepted = [{ type: "NamesAccepted", status: "True" }];

/** @param versions more than 64 are prepared in several turns */
function aDefinition({ versions = 1, uid = "1", group = "example.com", conditions = accepted } = {}): CustomResourceDefinition {
  return {
    metadata: { name: `things.${group}`, uid },
    spec: {
      ...{ group, scope: "Namespaced", names },
      versions: Array.from({ length: versions }, (_, i) => ({
        ...{ name: `v${i + 1}`, served: true, storage: i === 0 },
        schema: { openAPIV3Schema: { type: "object" } },
      })),
    },
    status: { acceptedNames: names, conditions, storedVersions: ["v1"] },
  } as CustomResourceDefinition;
}

/** Serving that the test tells of definitions; records what is in the catalogue, and which storage was released. */
function aServing() {
  let handler: Handler = {};
  const definitions = {
    lister: { get: () => undefined },
    addHandler: (added: Handler) => {
      handler = added;
    },
  } as unknown as SharedInformer<CustomResourceDefinition>;
  const catalogue = new Map<string, RegistryStore>();
  const released: string[] = [];
  const announced: string[] = [];
  const base = { watch: async ({ signal }: WatchRequest) => new WatchQueue({ signal }) } as unknown as Storage;
  const serving = newServing({
    definitions,
    catalogue: {
      add: (definition, version, store) => void catalogue.set(`${version.version}.${definition.group}`, store),
      remove: (group, version) => void catalogue.delete(`${version}.${group}`),
    },
    storage: { for: () => base, release: ({ group, resource }) => void released.push(`${resource}.${group}`) },
    ...{ storeOptions: {}, turns: new Turns(), memory: unlimitedEntries(), builtInGroups: new Set(["apps"]) },
    converterFor: () => renameOnly,
    featureEnabled: () => false,
    served: ({ metadata }) => void announced.push(metadata.name ?? ""),
    log: discardLogger,
  });
  return { serving, handler, catalogue, released, announced };
}

const aWatch = (store: RegistryStore | undefined) =>
  (store as RegistryStore).watch("", { signal: new AbortController().signal, revision: 1 });

test("a definition that is deleted while its versions are prepared is not served afterwards", async () => {
  const { serving, handler, catalogue, announced } = aServing();
  const definition = aDefinition({ versions: 70 });
  handler.added?.(definition);
  handler.deleted?.(definition);
  await serving.settled();
  assert.deepEqual([catalogue.size, announced], [0, []]);
  assert.equal(serving.storeOf(definition), undefined);
});

test("of two states that are prepared at the same time the newer one is served", async () => {
  const { serving, handler, catalogue } = aServing();
  const [older, newer] = [aDefinition({ versions: 70 }), aDefinition({ versions: 66 })];
  handler.added?.(older);
  handler.updated?.(older, newer);
  await serving.settled();
  assert.equal(catalogue.size, 66);
  handler.updated?.(newer, aDefinition({ versions: 2 }));
  assert.deepEqual([...catalogue.keys()], ["v1.example.com", "v2.example.com"]);
});

test("a deleted definition leaves no resource, watch or storage behind; another one stays", async () => {
  const { serving, handler, catalogue, released } = aServing();
  const [definition, other] = [aDefinition(), aDefinition({ group: "other.com" })];
  for (const one of [definition, other]) handler.added?.(one);
  const watch = await aWatch(serving.storeOf(definition));
  handler.deleted?.(definition);
  assert.deepEqual([[...catalogue.keys()], released, watch.ended], [["v1.other.com"], ["things.example.com"], true]);
  assert.equal(serving.storeOf(definition), undefined);
  assert.ok(serving.storeOf(other));
});

test("a definition that was deleted and made again is served anew, one whose conditions changed is not", async () => {
  const { handler, catalogue, announced } = aServing();
  const first = aDefinition();
  handler.added?.(first);
  const store = catalogue.get("v1.example.com");
  const watch = await aWatch(store);
  const established = aDefinition({ conditions: [...accepted, { type: "Established", status: "True" }] });
  handler.updated?.(first, established);
  assert.deepEqual([catalogue.get("v1.example.com") === store, watch.ended, announced.length], [true, false, 1]);
  handler.updated?.(established, aDefinition({ uid: "2" }));
  assert.deepEqual([catalogue.get("v1.example.com") === store, watch.ended, announced.length], [false, true, 2]);
});

test("a definition without accepted names, or in a built-in group, is not served, nor any more", () => {
  const { handler, catalogue } = aServing();
  const definition = aDefinition();
  handler.added?.(definition);
  handler.added?.(aDefinition({ group: "apps" }));
  assert.deepEqual([...catalogue.keys()], ["v1.example.com"]);
  handler.updated?.(definition, aDefinition({ conditions: [] }));
  assert.equal(catalogue.size, 0);
});

test("a version that is not served is no resource, though its store remains that of the stored objects", () => {
  const { serving, handler, catalogue } = aServing();
  const definition = aDefinition({ versions: 2 });
  definition.spec.versions[0]!.served = false;
  handler.added?.(definition);
  assert.deepEqual([...catalogue.keys()], ["v2.example.com"]);
  assert.ok(serving.storeOf(definition));
});

test("a definition whose accepted names changed is served anew under them", () => {
  const { handler, catalogue } = aServing();
  const definition = aDefinition();
  handler.added?.(definition);
  const store = catalogue.get("v1.example.com");
  const renamed = { ...definition, status: { ...definition.status, acceptedNames: { ...names, shortNames: ["th"] } } };
  handler.updated?.(definition, renamed as CustomResourceDefinition);
  assert.equal(catalogue.size, 1);
  assert.notEqual(catalogue.get("v1.example.com"), store);
});

test("a definition that becomes one that cannot be served is not served in its old form", () => {
  const { serving, handler, catalogue } = aServing();
  const [good, bad] = [aDefinition(), aDefinition()];
  Object.assign(bad.spec.versions[0]!, { additionalPrinterColumns: [{ name: "a", type: "string", jsonPath: ".a[" }] });
  handler.added?.(good);
  handler.updated?.(good, bad);
  assert.deepEqual([catalogue.size, serving.storeOf(bad)], [0, undefined]);
  handler.updated?.(bad, good);
  assert.deepEqual([...catalogue.keys()], ["v1.example.com"]);
});
