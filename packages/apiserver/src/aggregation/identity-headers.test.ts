import assert from "node:assert/strict";
import { test } from "node:test";
import { identityHeaders } from "./identity-headers.ts";
import { escapedPath } from "./proxy.ts";

test("names, groups and extras become headers of bytes", () => {
  const extra = { "example.com/id": ["1", "2"], "100%": ["x"], plain: ["y"], empty: [] };
  assert.deepEqual(identityHeaders({ name: "zoë", groups: ["a", "b"], extra }), {
    "x-remote-user": "zo\u00c3\u00ab",
    "x-remote-group": ["a", "b"],
    "x-remote-extra-example.com%2fid": ["1", "2"],
    "x-remote-extra-100%25": ["x"],
    "x-remote-extra-plain": ["y"],
  });
});

test("groups without a user are not sent as headers", () => {
  assert.deepEqual(identityHeaders({ name: "a", groups: [] }), { "x-remote-user": "a" });
});

for (const { path, want } of [
  { path: "/apis/a.b/v1/namespaces/x/things/a:b@c+d", want: "/apis/a.b/v1/namespaces/x/things/a:b@c+d" },
  { path: "/apis/a.b/v1/a b?c#d", want: "/apis/a.b/v1/a%20b%3Fc%23d" },
  { path: "/apis/a.b/v1/ü\r\n", want: "/apis/a.b/v1/%C3%BC%0D%0A" },
  { path: "/apis/a.b/v1/100%'(*)!", want: "/apis/a.b/v1/100%25%27%28%2A%29%21" },
]) {
  test(`${JSON.stringify(path)} is sent as ${want}`, () => {
    assert.equal(escapedPath(path), want);
  });
}
