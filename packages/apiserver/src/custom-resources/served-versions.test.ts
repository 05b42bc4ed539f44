import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { cpuMsOf } from "@coxswain/apimachinery/testing/cpu-time";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { newEntry } from "../storage/entry.ts";
import { newObjectCodec } from "../storage/object-codec.ts";
import type { DeleteRequest, Entry, Storage } from "../storage/storage.ts";
import { unlimitedEntries } from "../storage/testing.ts";
import type { CustomResourceDefinition } from "./definitions.ts";
import { type ServedVersion, type ServedVersionsOptions, servedVersions, storedResource } from "./served-versions.ts";
import { newVersionStorage } from "./version-storage.ts";

type Version = CustomResourceDefinition["spec"]["versions"][number];

const schemaWith = (...fields: string[]): Version["schema"] => ({
  openAPIV3Schema: { type: "object", properties: Object.fromEntries(fields.map((field) => [field, { type: "string" }])) },
});
const aVersion = (name: string, more: Partial<Version> = {}): Version => ({
  ...{ name, served: true, storage: false, schema: schemaWith(name) },
  ...more,
});
const names = { plural: "things", kind: "Thing" };

function aDefinition(versions: Version[], spec: object = {}, status?: object): CustomResourceDefinition {
  return {
    metadata: { name: "things.example.com" },
    spec: { group: "example.com", scope: "Namespaced", names, versions, ...spec },
    ...(status !== undefined && { status }),
  } as CustomResourceDefinition;
}

const three = [aVersion("v1beta1"), aVersion("v2", { storage: true }), aVersion("v1", { served: false })];

const serve = (definition: CustomResourceDefinition, more: Partial<ServedVersionsOptions> = {}) =>
  atOnce(
    servedVersions(definition, {
      base: {} as ServedVersionsOptions["base"],
      convert: async (objects) => [...objects],
      isTerminating: () => false,
      validationRules: true,
      storeOptions: {},
      turns: new Turns(),
      memory: unlimitedEntries(),
      ...more,
    }),
  );

test("serving takes time that is linear in the number of versions, deprecated ones too", () => {
  const ofMany = (deprecated: boolean) =>
    aDefinition(
      Array.from({ length: 4000 }, (_, i) => aVersion(`v${i + 1}`, { schema: schemaWith("a"), storage: i === 3999, deprecated })),
    );
  for (const deprecated of [false, true]) {
    const definition = ofMany(deprecated);
    const ms = cpuMsOf(() => serve(definition));
    assert.ok(ms < 1500, `${ms} ms`); // 10 s when each version is compared with all others
  }
});

const publishedOf = ({ version }: ServedVersion) => version.published && atOnce(version.published());

/** An object with the field of each version. */
const withAll = { apiVersion: "example.com/v1", kind: "Thing", metadata: {}, v1: "", v2: "", v1beta1: "" };

test("each version has its own schema, kind and store; all are stored in the storage version", () => {
  const versions = serve(aDefinition(three));
  assert.deepEqual(
    versions.map(({ version, served, isStorage, definition }) => [
      version.version,
      served,
      isStorage,
      definition.hub,
      definition.storage?.version,
      version.unknownFields?.(withAll),
    ]),
    [
      ["v1beta1", true, false, "v1beta1", "v2", ["v1", "v2"]],
      ["v2", true, true, "v2", "v2", ["v1", "v1beta1"]],
      ["v1", false, false, "v1", "v2", ["v2", "v1beta1"]],
    ],
  );
  assert.equal(storedResource(aDefinition(three)).hub, "v2");
});

test("preserveUnknownFields prunes nothing, and unknown fields are not reported", () => {
  const [version] = serve(aDefinition([aVersion("v1")], { preserveUnknownFields: true })) as [ServedVersion];
  assert.equal(version.version.unknownFields, undefined);
  assert.equal(publishedOf(version)?.preserving, true);
});

test("the names are those that were accepted, until then those that are requested; a list kind may be missing", () => {
  const acceptedNames = { plural: "things", kind: "Accepted", shortNames: ["th"], categories: ["all"], singular: "accepted" };
  const definitionOf = (status?: object, more: object = {}) =>
    serve(aDefinition([aVersion("v1")], { names: { ...names, ...more }, scope: "Cluster" }, status))[0]?.definition;
  hasFields(definitionOf({ acceptedNames }), {
    ...{ kind: "Accepted", listKind: "AcceptedList", singular: "accepted", shortNames: ["th"], categories: ["all"] },
    namespaced: false,
  });
  assert.partialDeepStrictEqual(definitionOf({ acceptedNames: { plural: "", kind: "" } }, { listKind: "Things" }), {
    ...{ kind: "Thing", listKind: "Things", singular: "", namespaced: false },
  });
  assert.equal(storedResource(aDefinition(three, {}, { acceptedNames })).kind, "Accepted");
});

for (const { name, versions, want } of [
  { name: "nothing better", versions: [], want: "example.com/v1beta1 Thing is deprecated" },
  { name: "nothing worse", versions: [aVersion("v1alpha1")], want: "example.com/v1beta1 Thing is deprecated" },
  {
    name: "the best of the better ones",
    versions: [aVersion("v1"), aVersion("v1beta2"), aVersion("v1alpha1")],
    want: "example.com/v1beta1 Thing is deprecated; use example.com/v1 Thing",
  },
  {
    name: "none that is deprecated or not served itself",
    versions: [aVersion("v3", { deprecated: true }), aVersion("v2", { served: false }), aVersion("v1beta2")],
    want: "example.com/v1beta1 Thing is deprecated; use example.com/v1beta2 Thing",
  },
]) {
  test(`the warning about a deprecated version names ${name}`, () => {
    const old = aVersion("v1beta1", { deprecated: true, storage: true });
    assert.equal(serve(aDefinition([old, ...versions]))[0]?.version.deprecation, want);
  });
}

test("a custom deprecation warning is sent unchanged", () => {
  const version = aVersion("v1", { deprecated: true, deprecationWarning: "do not" });
  assert.equal(serve(aDefinition([version]))[0]?.version.deprecation, "do not");
});

test("from the moment its deletion begins nothing is created, and neither that nor updates are announced", () => {
  let isTerminating = false;
  const definition = serve(aDefinition([aVersion("v1")]), { isTerminating: () => isTerminating })[0]?.definition;
  const refused = () => ["create", "update", "delete"].map((verb) => definition?.refusal?.(verb as never)?.message);
  assert.deepEqual([refused(), definition?.announcedVerbs?.().includes("create")], [[undefined, undefined, undefined], true]);
  const all = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
  assert.deepEqual([definition?.verbs, definition?.announcedVerbs?.()], [all, all]);
  isTerminating = true;
  assert.equal((definition?.refusal?.("create") as { status?: { code?: number } } | undefined)?.status?.code, 405);
  assert.deepEqual(refused(), ["create not allowed while custom resource definition is terminating", undefined, undefined]);
  assert.deepEqual(definition?.announcedVerbs?.(), ["delete", "deletecollection", "get", "list", "watch"]);
});

test("fields that cannot be selected by are named, and the objects of lists keep their kind", () => {
  const definition = serve(aDefinition([aVersion("v1")]))[0]?.definition;
  assert.equal(definition?.unknownFieldText?.("a.b"), "field label not supported: a.b");
  assert.deepEqual([definition?.custom, definition?.itemsKeepKind], [true, true]);
});

test("status and scale are served where the version has them, and only a structural schema is published", () => {
  const loose = { openAPIV3Schema: { type: "object", properties: { a: {} } } } as Version["schema"];
  const scale = { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" };
  const versions = serve(
    aDefinition([aVersion("v1", { subresources: { status: {}, scale } }), aVersion("v1beta1", { schema: loose })]),
  );
  assert.deepEqual(
    versions.map((version) => [
      version.definition.statusStrategy !== undefined,
      version.definition.scale !== undefined,
      publishedOf(version)?.schema !== undefined,
    ]),
    [
      [true, true, true],
      [false, false, false],
    ],
  );
});

test("a deletion waits for requests for the object in its served version", async () => {
  const stored = { apiVersion: "example.com/v2", kind: "Thing", metadata: { name: "a", namespace: "b" }, v2: "x" };
  const codec = newObjectCodec(
    { group: "example.com", resource: "things", kind: "Thing", namespaced: true, hub: "v1", versions: [] },
    "application/json",
    unlimitedEntries(),
  );
  const entry = newEntry(codec, "b/a", 5, structuredClone(stored));
  const base = {
    async delete(_key: string, { validate }: DeleteRequest) {
      await validate?.(entry);
      return entry;
    },
  } as unknown as Storage;
  const storage = newVersionStorage(
    base,
    codec,
    {
      show: (objects) => objects.map((object) => ({ ...object, metadata: { ...object.metadata }, apiVersion: "example.com/v1" })),
      store: (object) => object,
    },
    new Turns(),
  );
  const refuse = async (current: Entry): Promise<void> => {
    throw new Error(`not in ${current.object().apiVersion}`);
  };
  await assert.rejects(storage.delete("b/a", { validate: refuse }), /not in example.com\/v1/);
  assert.equal((await storage.delete("b/a", { validate: async () => {} })).object().apiVersion, "example.com/v1");
});
