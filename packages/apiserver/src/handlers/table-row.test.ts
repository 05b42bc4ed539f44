import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ages } from "../registry/generic/strategy.ts";
import { newEntry } from "../storage/entry.ts";
import { unlimitedEntries } from "../storage/testing.ts";
import type { ServedResource } from "./served-resources.ts";
import { rowBytes, rowSlot } from "./table-row.ts";
import { rowJson, type TableOptions, tableHead } from "./transform.ts";

const start = Date.parse("2022-01-01T00:00:00Z");
const codec = {
  toJson: (object: object) => JSON.stringify(object),
  *toJsonInSteps(object: object) {
    yield;
    return JSON.stringify(object);
  },
  fromStored: (bytes: Buffer) => JSON.parse(bytes.toString()),
  fromJson: (bytes: Buffer) => JSON.parse(bytes.toString()),
  fieldsOf: () => ({}),
  memory: unlimitedEntries(),
};

interface Thing {
  metadata: { name: string; labels?: Record<string, string> };
  times: number[];
}

/** Cells compute the ages in a different order than the columns. */
const table = {
  columns: ["Name", "Last", "First"].map((name) => ({ name, type: "string" })),
  cells({ metadata, times }: Thing, ages: Ages) {
    const texts = times.map((ms) => ages.since(ms));
    return [metadata.name, ...texts.map((age) => `${age} ago`).reverse()];
  },
};
const served = { definition: { table } } as unknown as ServedResource;

const rowAt = (thing: Thing, options: TableOptions) => {
  const entry = newEntry(codec, "x", 7, structuredClone(thing) as never);
  const slot = rowSlot(served, options);
  return {
    kept: (now: number) => (slot === undefined ? undefined : text8(rowBytes(slot, served, entry, { ...options, now }))),
    made: (now: number) => rowJson(served, entry, { ...options, now }),
  };
};
const text8 = (pieces: Uint8Array[] | undefined) => (pieces === undefined ? undefined : Buffer.concat(pieces).toString());

for (const { name, thing } of [
  { name: "no age", thing: { metadata: { name: "a" }, times: [] } },
  { name: "one age", thing: { metadata: { name: "a" }, times: [start] } },
  {
    name: "ages, names and labels of any text",
    thing: { metadata: { name: 'ä"\\u0001;age-0;', labels: { ü: "age-1;" } }, times: [start, start + 90_000] },
  },
]) {
  for (const includeObject of ["None", "Metadata"] as const) {
    test(`a kept row with ${name} is the row that is made, at any time (${includeObject})`, () => {
      const row = rowAt(thing, { includeObject, metaVersion: "v1", now: 0 });
      for (const later of [0, 59_000, 7_200_000, 86_400_000 * 400])
        assert.equal(row.kept(start + later), row.made(start + later));
    });
  }
}

test("the head of a Table defines each column, or none", () => {
  const options = { includeObject: "None", metaVersion: "v1", now: 0 } as const;
  const definitions = (columns?: typeof table) => JSON.parse(`${tableHead({}, options, columns as never)}]}`).columnDefinitions;
  assert.deepEqual(
    definitions(table).map(({ name }: { name: string }) => name),
    ["Name", "Last", "First"],
  );
  assert.deepEqual(definitions(table)[0], { name: "Name", type: "string", format: "", description: "", priority: 0 });
  const wide = { ...table, columns: [{ name: "IP", type: "string", format: "ip", description: "an address", priority: 1 }] };
  assert.deepEqual(definitions(wide), wide.columns);
  assert.equal(definitions(), null);
});

test("rows with whole objects are not kept", () => {
  assert.equal(
    rowAt({ metadata: { name: "a" }, times: [] }, { includeObject: "Object", metaVersion: "v1", now: 0 }).kept(start),
    undefined,
  );
});

test("an entry whose metadata was shown in one version is shown in the other one, too", () => {
  const entry = newEntry(codec, "x", 7, { metadata: { name: "a" }, times: [] } as never);
  for (const metaVersion of ["v1beta1", "v1", "v1beta1"])
    assert.equal(
      JSON.parse(rowJson(served, entry, { includeObject: "Metadata", metaVersion, now: start })).object.apiVersion,
      `meta.k8s.io/${metaVersion}`,
    );
});
