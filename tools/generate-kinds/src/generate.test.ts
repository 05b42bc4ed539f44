import assert from "node:assert/strict";
import { test } from "node:test";
import { type Facts, packagesOf } from "./facts.ts";
import { writeResources } from "./resources.ts";
import { sameTypes } from "./same-types.ts";
import { writeTable } from "./tables.ts";
import { typeTexts, writeTypes } from "./types.ts";

const meta = "k8s.io/apimachinery/pkg/apis/meta/v1";
const facts: Facts = {
  "k8s.io/api/batch/v1": {
    Thing: {
      fields: [
        { name: "", type: `${meta}.TypeMeta`, inline: true },
        { name: "metadata", type: `${meta}.ObjectMeta`, proto: "bytes,1,opt", omitempty: true, optional: true },
        { name: "spec", type: "k8s.io/api/batch/v1.ThingSpec", proto: "bytes,2,opt", omitempty: true },
        { name: "status", type: "k8s.io/api/batch/v1.ThingSpec", proto: "bytes,3,opt", omitempty: true },
      ],
    },
    ThingSpec: {
      fields: [
        { name: "names", type: "[]string", proto: "bytes,1,rep", listType: "set" },
        { name: "policy", type: "*k8s.io/api/batch/v1.Policy", proto: "bytes,2,opt", omitempty: true },
        { name: "when", type: `${meta}.Time`, proto: "bytes,3,opt" },
        {
          name: "limits",
          type: "map[string]k8s.io/apimachinery/pkg/api/resource.Quantity",
          proto: "bytes,4,rep",
          omitempty: true,
        },
        { name: "-", type: "string" },
      ],
    },
    Policy: { alias: "string", enum: ["A", "B"] },
    Interface: { alias: "any" },
  },
  "k8s.io/apimachinery/pkg/runtime": { Codec: { alias: "any" } },
};

test("omits packages and types that are never on the wire", () => {
  const [batch, ...others] = packagesOf(facts);
  assert.deepEqual(others, []);
  assert.equal(batch?.folder, "batch/v1");
  assert.deepEqual([...(batch?.types.keys() ?? [])], ["Thing", "ThingSpec", "Policy"]);
});

test("writes a table with short references", () => {
  const table = JSON.parse(writeTable(packagesOf(facts)[0] as never));
  assert.deepEqual(table.types.ThingSpec.fields, [
    ["names", "[]string", 1, "", { listType: "set" }],
    ["policy", "*.Policy", 2, "o"],
    ["when", "Time", 3, ""],
    ["limits", "map:Quantity", 4, "o"],
  ]);
  assert.deepEqual(table.types.Thing.fields[0], ["", "meta/v1.TypeMeta", 0, "i"]);
});

test("the optional fields of written types are those that decoding may omit", () => {
  const source = writeTypes(packagesOf(facts)[0] as never, new Set());
  assert.match(
    source,
    /export interface Thing extends metaV1\.TypeMeta \{\n {2}metadata: metaV1\.ObjectMeta;\n {2}spec: ThingSpec;\n {2}status\?: ThingSpec;\n\}/,
  );
  assert.match(
    source,
    /names: string\[\];\n {2}policy\?: Policy;\n {2}when\?: string \| null;\n {2}limits\?: Record<string, string>;/,
  );
  assert.match(source, /export type Policy = "A" \| "B" \| \(string & \{\}\);/);
});

test("takes types from a preferred version that has equal ones, with all types that they refer to", () => {
  const version = (name: string, size: string): Facts => {
    const own = `k8s.io/api/batch/${name}`;
    const field = (type: string) => ({ name: type.toLowerCase(), type: `${own}.${type}`, proto: "bytes,1,opt" });
    return {
      [own]: {
        Size: { fields: [{ name: "size", type: size, proto: "bytes,1,opt" }] },
        Sized: { fields: [field("Size")] },
        Colour: { fields: [{ name: "colour", type: "string", proto: "bytes,1,opt" }] },
        Coloured: { fields: [field("Colour")] },
      },
    };
  };
  const packages = packagesOf({ ...version("v1beta1", "string"), ...version("v1", "int32") });
  const same = sameTypes(packages, typeTexts);
  assert.deepEqual([...(same.get("batch/v1") ?? [])], []);
  assert.deepEqual(
    [...(same.get("batch/v1beta1")?.keys() ?? [])],
    ["Colour", "Coloured"],
    "Sized is written alike, and means another Size",
  );
  const beta = packages.find(({ folder }) => folder === "batch/v1beta1") as never;
  const source = writeTypes(beta, new Set(), same.get("batch/v1beta1"));
  assert.match(source, /^export type \{ Colour, Coloured \} from "\.\/v1\.ts";$/m);
  assert.doesNotMatch(source, /interface Colour/);
});

test("names a constant after the kind and takes the preferred version", () => {
  const rows = [
    "group\tversion\tresource\tkind\tnamespaced\tshortNames\tcategories\tverbs\tserved",
    "storage.k8s.io\tv1beta1\tcsinodes\tCSINode\tno\t-\t-\tget,list\tyes",
    "storage.k8s.io\tv1\tcsinodes\tCSINode\tno\t-\t-\tget,list\tyes",
    "-\tv1\tpods/eviction\tEviction\tyes\t-\t-\tcreate\tyes",
    "-\tv1\tservices\tService\tyes\tsvc\tall\tcreate,delete,get\tyes",
  ];
  const source = writeResources(rows.join("\n"));
  assert.match(source, /export const csiNodes: ResourceRef = \{"group":"storage\.k8s\.io","version":"v1"/);
  assert.match(source, /"resource":"pods\/eviction".*"kindGroup":"policy","kindVersion":"v1"/);
  assert.match(source, /"resource":"services".*"verbs":\["create","delete","deletecollection","get"\]/, "a verb that came later");
});
