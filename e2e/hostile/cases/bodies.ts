/** Bodies and patches that are expensive relative to their size. */
import { gzipSync } from "node:zlib";
import { attacked, type Case, type RequestOptions } from "../case.ts";

const maps = `${attacked}/configmaps`;
const list = (count: number, each: (at: number) => string): string => Array.from({ length: count }, (_, i) => each(i)).join(",");
const aliases = (levels: number): string =>
  Array.from({ length: levels }, (_, i) => `a${i}: &a${i} [${i === 0 ? "x" : list(9, () => `*a${i - 1}`)}]`).join("\n");
/** Wraps bytes in the envelope of a protobuf ConfigMap. */
function enveloped(raw: Buffer): Buffer {
  const length = Buffer.from([0x12, (raw.length & 0x7f) | 0x80, ((raw.length >> 7) & 0x7f) | 0x80, (raw.length >> 14) & 0x7f]);
  return Buffer.concat([Buffer.from("k8s\0\n\x0f\n\x02v1\x12\x09ConfigMap"), length, raw]);
}

/** Sends the same body repeatedly as one user, five at a time. */
const bodies = (name: string, make: () => RequestOptions, method = "POST", path = maps): Case => ({
  name,
  user: "ordinary",
  setup: (attack) => attack.prepare("POST", maps, { body: { metadata: { name: "one" }, data: { a: "b" } } }),
  cleanup: (attack) => attack.removeAll(maps),
  async run(attack) {
    const options = make();
    await attack.repeat(5, () => attack.request(method, path, options));
  },
});
const patch = (name: string, kind: string, make: () => string, query = ""): Case =>
  bodies(name, () => ({ type: `application/${kind}`, body: make() }), "PATCH", `${maps}/one${query}`);

const protobuf = "application/vnd.kubernetes.protobuf";
const yaml = "application/yaml";
export const bodyCases: readonly Case[] = [
  bodies("JSON: 3 MB of [", () => ({ body: "[".repeat(3 << 20) })),
  bodies("JSON: 100,000 levels", () => ({ body: '{"a":'.repeat(100_000) })),
  bodies("JSON: 10 MB of text", () => ({ body: `{"data":{"a":"${"x".repeat(10 << 20)}"}}` })),
  bodies("JSON: 150,000 keys that are wrong", () => ({
    body: `{"metadata":{"generateName":"a-"},"data":{${list(150_000, (i) => `"!${i}":""`)}}}`,
  })),
  bodies("JSON: 100,000 unknown fields", () => ({
    body: `{"metadata":{"generateName":"a-"},${list(100_000, (i) => `"f${i}":1`)}}`,
  })),
  bodies("JSON: 10,000 managers", () => ({
    body: `{"metadata":{"generateName":"a-","managedFields":[${list(10_000, (i) => `{"manager":"m${i}","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:k${i}":{}}}}`)}]}}`,
  })),
  bodies("gzip of 100 MB", () => ({ body: gzipSync(Buffer.alloc(100_000_000, 0x20)), headers: { "content-encoding": "gzip" } })),
  bodies("YAML: nine levels of aliases", () => ({ type: yaml, body: aliases(9) })),
  bodies("YAML: 50,000 lines", () => ({
    type: yaml,
    body: `metadata: {generateName: a-}\ndata:\n${Array.from({ length: 50_000 }, (_, i) => `  k${i}: v`).join("\n")}`,
  })),
  bodies("YAML: 100,000 levels", () => ({ type: yaml, body: `a: ${"[".repeat(100_000)}` })),
  bodies("protobuf: a million groups in groups", () => ({ type: protobuf, body: enveloped(Buffer.alloc(1_000_000, 0x0b)) })),
  bodies("protobuf: a million empty entries", () => ({
    type: protobuf,
    body: enveloped(Buffer.from("\x12\0".repeat(1_000_000))),
  })),
  patch(
    "JSON patch: 10,000 operations",
    "json-patch+json",
    () => `[${list(10_000, (i) => `{"op":"add","path":"/data/k${i}","value":"v"}`)}]`,
  ),
  patch(
    "JSON patch: copies that double",
    "json-patch+json",
    () =>
      `[{"op":"add","path":"/data","value":{"a":"${"x".repeat(100)}"}},${list(9000, (i) => `{"op":"copy","from":"/data","path":"/data/k${i}"}`)}]`,
  ),
  patch(
    "JSON patch: moves back and forth",
    "json-patch+json",
    () => `[${list(4000, () => '{"op":"move","from":"/data","path":"/x"},{"op":"move","from":"/x","path":"/data"}')}]`,
  ),
  patch("merge patch: 90,000 nulls", "merge-patch+json", () => `{"data":{${list(90_000, (i) => `"k${i}":null`)}}}`),
  patch(
    "strategic merge patch: 30,000 directives",
    "strategic-merge-patch+json",
    () => `{"metadata":{"ownerReferences":[${list(30_000, (i) => `{"$patch":"delete","uid":"u${i}"}`)}]}}`,
  ),
  patch(
    "strategic merge patch: 20,000 items by key",
    "strategic-merge-patch+json",
    () => `{"metadata":{"ownerReferences":[${list(20_000, (i) => `{"apiVersion":"v1","kind":"A","name":"n","uid":"u${i}"}`)}]}}`,
  ),
  patch(
    "apply: 30,000 keys",
    "apply-patch+yaml",
    () => `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"one"},"data":{${list(30_000, (i) => `"k${i}":"v"`)}}}`,
    "?fieldManager=wide&force=true",
  ),
  {
    name: "apply: 1,000 managers of one object",
    user: "ordinary",
    cleanup: (attack) => attack.removeAll(maps),
    run: (attack) =>
      attack.repeat(10, (lane, round) =>
        attack.request("PATCH", `${maps}/shared?fieldManager=m${lane * 100 + (round % 100)}`, {
          type: "application/apply-patch+yaml",
          body: {
            kind: "ConfigMap",
            apiVersion: "v1",
            metadata: { name: "shared" },
            data: { [`k${lane * 100 + (round % 100)}`]: "v" },
          },
        }),
      ),
  },
];
