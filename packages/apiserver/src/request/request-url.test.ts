import assert from "node:assert/strict";
import { test } from "node:test";
import { decodePath, queryOf } from "./request-info.ts";

for (const [path, want] of [
  ["/api/v1/pods", "/api/v1/pods"],
  ["/api/v1/namespaces/a%2Fb", "/api/v1/namespaces/a/b"],
  ["/%C3%A9", "/é"],
  ["/%ff/%C3", "/\ufffd/\ufffd"],
] as const) {
  test(`reads the path ${path}`, () => assert.equal(decodePath(path), want));
}

for (const path of ["/%zz", "/%2", "/%", "/%%20"]) {
  test(`refuses the path ${path}`, () => assert.throws(() => decodePath(path), URIError));
}

for (const [url, want] of [
  ["/a", {}],
  ["/a?", {}],
  ["/a?b=1&c", { b: "1", c: "" }],
  ["/a?b=1%2C2+3", { b: "1,2 3" }],
  ["/a?b=%zz&c=1&%=2", { c: "1" }],
  ["/a?b=1;c=2&d=3", { d: "3" }],
] as const) {
  test(`reads the query of ${url}`, () => assert.deepEqual(Object.fromEntries(queryOf(url)), want));
}
