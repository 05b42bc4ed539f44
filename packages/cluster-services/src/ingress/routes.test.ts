import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hostNameOf, newRouteTable, routedPath } from "./routes.ts";
import { anIngress, type Path } from "./testing.ts";

const matched = (paths: readonly Path[], path: string): string | undefined =>
  newRouteTable([anIngress("a", [{ paths }])])
    .match("", path)
    ?.backend?.service.slice("default/".length);

describe("paths, as the table of upstream's documentation", () => {
  for (const [type, prefix, path, matches] of [
    ["Prefix", "/", "/any/path", true],
    ["Exact", "/foo", "/foo", true],
    ["Exact", "/foo", "/bar", false],
    ["Exact", "/foo", "/foo/", false],
    ["Exact", "/foo/", "/foo", false],
    ["Prefix", "/foo", "/foo", true],
    ["Prefix", "/foo", "/foo/", true],
    ["Prefix", "/foo/", "/foo", true],
    ["Prefix", "/foo/", "/foo/", true],
    ["Prefix", "/aaa/bb", "/aaa/bbb", false],
    ["Prefix", "/aaa/bbb", "/aaa/bbb", true],
    ["Prefix", "/aaa/bbb/", "/aaa/bbb", true],
    ["Prefix", "/aaa/bbb", "/aaa/bbb/", true],
    ["Prefix", "/aaa/bbb", "/aaa/bbb/ccc", true],
    ["Prefix", "/aaa/bbb", "/aaa/bbbxyz", false],
    ["ImplementationSpecific", "/aaa", "/aaa/bbb", true],
    ["Prefix", "/Foo", "/foo", false],
    ["Prefix", "/foo", `/${"x/".repeat(8_000)}`, false],
  ] as const)
    test(`${type} ${prefix} ${matches ? "matches" : "does not match"} ${path.slice(0, 30)}`, () => {
      assert.equal(matched([[type, prefix, "web"]], path), matches ? "web" : undefined);
    });
  const mixed: Path[] = [
    ["Prefix", "/", "root"],
    ["Prefix", "/aaa", "aaa"],
    ["Prefix", "/aaa/bbb", "bbb"],
    ["Exact", "/foo", "exact"],
    ["Prefix", "/foo", "prefix"],
  ];
  for (const [path, want] of [
    ["/aaa/ccc", "aaa"],
    ["/aaa/bbb", "bbb"],
    ["/aaa/bbbx/y", "aaa"],
    ["/ccc", "root"],
    ["/foo", "exact"],
    ["/foo/", "prefix"],
  ] as const)
    test(`the longest path counts, and an exact one before a prefix: ${path}`, () => assert.equal(matched(mixed, path), want));
});

describe("hosts", () => {
  const table = newRouteTable([
    anIngress("a", [
      { host: "foo.bar.com", paths: [["Prefix", "/", "exact"]] },
      { host: "*.bar.com", paths: [["Prefix", "/", "wildcard"]] },
      { host: "*.foo.com", paths: [["Prefix", "/", "foo"]] },
      { paths: [["Prefix", "/any", "any"]] },
    ]),
  ]);
  for (const [host, path, want] of [
    ["foo.bar.com", "/", "exact"],
    ["x.bar.com", "/", "wildcard"],
    ["x.foo.com", "/", "foo"],
    ["baz.x.foo.com", "/", undefined],
    ["foo.com", "/", undefined],
    ["other", "/any/x", "any"],
    ["other", "/", undefined],
    ["", "/any", "any"],
  ] as const)
    test(`${host || "no host"} ${path}`, () =>
      assert.equal(table.match(host, path)?.backend?.service, want === undefined ? undefined : `default/${want}`));
});

test("the older Ingress decides about a path that two have, and a default backend gets the rest", () => {
  const old = anIngress("z", [{ host: "h", paths: [["Prefix", "/", "old"]] }], { created: "2026-01-01T00:00:00Z" });
  const young = anIngress(
    "a",
    [
      {
        host: "h",
        paths: [
          ["Prefix", "/", "young"],
          ["Prefix", "/y", "y"],
        ],
      },
    ],
    {
      created: "2026-01-02T00:00:00Z",
      defaultBackend: "rest",
    },
  );
  const table = newRouteTable([young, old]);
  const serviceOf = (host: string, path: string) => table.match(host, path)?.backend?.service;
  assert.equal(serviceOf("h", "/"), "default/old");
  assert.equal(serviceOf("h", "/y"), "default/y");
  assert.equal(serviceOf("other", "/"), "default/rest");
});

for (const [authority, want] of [
  ["Foo.Bar:8080", "foo.bar"],
  ["foo.bar.", "foo.bar"],
  ["[::1]:80", "[::1]"],
  ["[::1]", "[::1]"],
] as const)
  test(`host of ${authority}`, () => assert.equal(hostNameOf(authority), want));

for (const [target, want] of [
  ["/a/b?x=/../y", "/a/b"],
  ["/public/../admin", "/admin"],
  ["/public/%2e%2E/admin?x", "/admin"],
  ["/public/..\\admin", "/admin"],
  ["/a//b", "/a//b"],
  ["//host/x/../y", "//host/y"],
] as const)
  test(`rules see ${target} as ${want}`, () => assert.equal(routedPath(target), want));
