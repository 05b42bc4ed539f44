import assert from "node:assert/strict";
import { test } from "node:test";
import { withoutLiterals } from "./json-decode.ts";
import { parseJsonText } from "./json-parse.ts";

test("numbers kept as text become numbers in place, at any depth", () => {
  const value = parseJsonText('{"a":1.50,"b":[1e2,{"c":2.0,"__proto__":3.0}],"d":null,"e":"1.0"}', { literals: true });
  assert.equal(withoutLiterals(value), value);
  assert.equal(JSON.stringify(value), '{"a":1.5,"b":[100,{"c":2,"__proto__":3}],"d":null,"e":"1.0"}');
  assert.equal(withoutLiterals(parseJsonText("1.0", { literals: true })), 1);
});
