import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { backendsOf, hostNameOf, newRouteTable, routedPath } from "./routes.ts";
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

test("of Ingresses of the same age the first by namespace and name decides, in whatever order they are seen", () => {
  const to = (name: string) =>
    anIngress(name, [{ host: "h", paths: [["Prefix", "/", name]] }], { defaultBackend: `rest-${name}` });
  const elsewhere = { ...to("z"), metadata: { ...to("z").metadata, namespace: "another" } };
  for (const [ingresses, want] of [
    [[to("b"), to("a")], "default/a"],
    [[to("a"), to("b")], "default/a"],
    [[to("a"), elsewhere], "another/z"],
    [[elsewhere, to("a")], "another/z"],
  ] as const) {
    const table = newRouteTable(ingresses);
    assert.equal(table.match("h", "/x")?.backend?.service, want);
    assert.equal(table.match("other", "/")?.backend?.service, want.replace("/", "/rest-"));
  }
});

test("a host's requests without a rule go to the default backend of the oldest Ingress that names the host", () => {
  const one = (name: string, host: string, created: string) =>
    anIngress(name, [{ host, paths: [["Exact", `/${name}`, name]] }], { created, defaultBackend: `rest-${name}` });
  const table = newRouteTable([
    one("young", "h", "2026-01-03T00:00:00Z"),
    one("old", "h", "2026-01-02T00:00:00Z"),
    one("wild", "*.test", "2026-01-01T00:00:00Z"),
  ]);
  const serviceOf = (host: string, path: string) => table.match(host, path)?.backend?.service;
  assert.deepEqual(
    [serviceOf("h", "/x"), serviceOf("h", "/young"), serviceOf("a.test", "/x"), serviceOf("other", "/x")],
    ["default/rest-old", "default/young", "default/rest-wild", "default/rest-wild"],
  );
});

test("host names are compared in lower case, and a rule without paths has only its Ingress's default backend", () => {
  const ingress = anIngress("a", [{ host: "Foo.Test", paths: [["Prefix", "/", "web"]] }], { defaultBackend: "rest" });
  ingress.spec.rules?.push({ host: "empty.test" });
  const table = newRouteTable([ingress]);
  assert.equal(table.match("foo.test", "/")?.backend?.service, "default/web");
  assert.equal(table.match("empty.test", "/")?.backend?.service, "default/rest");
});

test("a port's name is used before its number, and checks see every backend of an Ingress", () => {
  const ingress = anIngress("a", [{ host: "h", paths: [["Prefix", "/", "web"]] }], { defaultBackend: "rest" });
  const [rule] = ingress.spec.rules ?? [];
  rule?.http?.paths.push({
    pathType: "Exact",
    path: "/x",
    backend: { service: { name: "x", port: { name: "http", number: 80 } } },
  });
  rule?.http?.paths.push({ pathType: "Exact", path: "/y", backend: { resource: { kind: "Bucket", name: "y" } } });
  ingress.spec.rules?.push({ host: "empty.test" });
  assert.deepEqual(backendsOf(ingress), [
    { service: "default/rest", port: 80 },
    { service: "default/web", port: 80 },
    { service: "default/x", port: "http" },
    undefined,
  ]);
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
