import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeUntyped, indentJson } from "@coxswain/apimachinery/objects/codec/json";
import { yamlOfJson } from "@coxswain/apimachinery/objects/codec/yaml";
import fc from "@coxswain/apimachinery/testing/fast-check";
import type { Entry } from "../storage/storage.ts";
import { type TextForm, textList } from "./text-list.ts";

const wholes: Readonly<Record<TextForm, (json: string) => string>> = {
  compact: (json) => `${json}\n`,
  indented: indentJson,
  yaml: yamlOfJson,
};

const text = fc.oneof(fc.string(), fc.constantFrom("", "a\nb\n", "- 0\n", "\n    0", "0", " x: [1]", "yes", "é\u2028"));
const item = fc.dictionary(
  fc.string({ minLength: 1 }),
  fc.oneof(text, fc.integer(), fc.array(text, { maxLength: 2 }), fc.dictionary(text, text, { maxKeys: 2 })),
  { maxKeys: 4 },
);

for (const form of ["compact", "indented", "yaml"] as const) {
  test(`a list that is written item by item is the whole list, ${form}`, () => {
    fc.assert(
      fc.property(fc.constantFrom("Thing", "ConfigMap"), fc.array(item, { maxLength: 4 }), (kind, items) => {
        const json = items.map((one) => encodeUntyped(one));
        const frame = `{"kind":"${kind}List","apiVersion":"v1","metadata":{"resourceVersion":"10","continue":"a0"},"items":[`;
        const { head, bytesOf, tail, empty } = textList(form, `${frame}]}`, (entry) => json[entry.revision] as Buffer);
        const written = json.flatMap((_, index) => [...bytesOf({ revision: index } as Entry, index === 0)]);
        const got = items.length === 0 ? empty : Buffer.concat([head, ...written, tail]);
        assert.equal(got.toString(), wholes[form](`${frame}${json.join(",")}]}`));
      }),
      { numRuns: 200 },
    );
  });
}
