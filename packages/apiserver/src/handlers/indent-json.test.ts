import assert from "node:assert/strict";
import { test } from "node:test";
import { indentJson, wantsIndent } from "./indent-json.ts";

for (const json of [
  '{"kind":"Pod","metadata":{},"spec":{"containers":[],"a":[1,2,{"b":null}]},"s":"a\\"{b}:,[c]\\\\"}',
  "{}",
  "[]",
  '"text"',
  '{"a":{"b":{"c":[[]]}}}',
]) {
  test(`indents ${json.slice(0, 30)} as JSON.stringify does`, () => {
    assert.equal(indentJson(json), JSON.stringify(JSON.parse(json), null, 2));
  });
}

test("leaves integers beyond 2^53 as they are", () => {
  assert.equal(indentJson('{"n":9223372036854775807}'), '{\n  "n": 9223372036854775807\n}');
});

for (const { query, agent, want } of [
  { query: "", agent: "kubectl/v1.23.0", want: false },
  { query: "", agent: "curl/8.0", want: true },
  { query: "pretty", agent: "kubectl/v1.23.0", want: false },
  { query: "pretty", agent: "Mozilla/5.0 (X11)", want: true },
  { query: "pretty=true", agent: undefined, want: true },
  { query: "pretty=1", agent: undefined, want: true },
  { query: "pretty=0", agent: "curl/8.0", want: false },
  { query: "pretty=false", agent: "curl/8.0", want: false },
]) {
  test(`?${query} from ${agent ?? "nobody"} is ${want ? "" : "not "}indented`, () => {
    assert.equal(wantsIndent(new URLSearchParams(query), agent), want);
  });
}
