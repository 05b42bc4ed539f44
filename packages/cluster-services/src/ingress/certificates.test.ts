import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Ingress } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { secrets } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { testPair } from "@coxswain/apimachinery/testing/tls";
import { Certificates } from "./certificates.ts";

test("a Secret that no Ingress names any more is forgotten, the others stay", async () => {
  const client = { get: async () => ({ metadata: { resourceVersion: "1" } }) };
  const certificates = new Certificates({ client: client as never as Client, log: discardLogger });
  const naming = (...names: string[]): Ingress[] =>
    names.map((name) => ({ metadata: { name, namespace: "ns" }, spec: { tls: [{ secretName: name }] } }));
  assert.equal(certificates.want(naming("a", "b")), true);
  await certificates.load(new AbortController().signal);
  assert.equal(certificates.want(naming("a", "b")), false);
  assert.equal(certificates.want(naming("b")), false);
  assert.equal(certificates.problemOf("ns/a"), undefined);
  assert.match(certificates.problemOf("ns/b") ?? "", /no usable certificate/);
  assert.equal(certificates.want(naming("a", "b")), true);
});

const base64 = (text: string): string => Buffer.from(text).toString("base64");

test("the first of two Ingresses decides about a host, and a Secret that cannot be read hides no other", async () => {
  const { cert, key } = await testPair();
  const data = { "tls.crt": base64(cert), "tls.key": base64(key) };
  let unreadable = "";
  const client = {
    async get(_: unknown, { name }: { name: string }) {
      if (name === unreadable) throw new Error("the server is away");
      return { metadata: { name, resourceVersion: "1" }, data };
    },
  };
  const certificates = new Certificates({ client: client as never as Client, log: discardLogger });
  const naming = (...names: string[]): Ingress[] =>
    names.map((name) => ({
      metadata: { name, namespace: "ns" },
      spec: { tls: [{ secretName: name, hosts: ["Shared.TEST", `${name}.test`] }] },
    }));
  const { signal } = new AbortController();
  certificates.want(naming("a", "b"));
  await certificates.load(signal);
  assert.equal(certificates.contextOf("shared.test"), certificates.contextOf("a.test"));
  assert.notEqual(certificates.contextOf("b.test"), certificates.contextOf("a.test"));
  unreadable = "c";
  certificates.want(naming("c", "d"));
  await assert.rejects(certificates.load(signal));
  assert.equal(certificates.contextOf("c.test"), undefined);
  assert.ok(certificates.contextOf("d.test"));
});

test("a Secret that does not exist is reported; one that cannot be read keeps its certificate; an unchanged one is not loaded again", async () => {
  const { cert, key } = await testPair();
  const stored = new Map([["a", "1"]]);
  let isAway = false;
  const client = {
    async get(_: unknown, { name }: { name: string }) {
      if (isAway) throw new Error("the server is away");
      const version = stored.get(name);
      if (version === undefined) throw notFound(secrets, name);
      return { metadata: { name, resourceVersion: version }, data: { "tls.crt": base64(cert), "tls.key": base64(key) } };
    },
  };
  let loads = 0;
  const log = { ...discardLogger, info: () => void loads++ };
  const certificates = new Certificates({ client: client as never as Client, log });
  const { signal } = new AbortController();
  certificates.want([
    {
      metadata: { name: "x", namespace: "ns" },
      spec: { tls: [{ secretName: "a" }, { secretName: "b", hosts: ["b.test"] }, { hosts: ["none.test"] }] },
    },
  ]);
  assert.equal(certificates.problemOf("ns/b"), undefined, "it was not looked at yet");
  await certificates.load(signal);
  assert.equal(certificates.problemOf("ns/b"), "there is no Secret ns/b");
  const context = certificates.contextOf("any.test");
  assert.ok(context, "of a Secret without hosts, for all");
  assert.equal(certificates.contextOf(""), context);
  isAway = true;
  await assert.rejects(certificates.load(signal), { message: "cannot read the Secret ns/a for its certificate" });
  assert.equal(certificates.contextOf("any.test"), context);
  isAway = false;
  await certificates.load(signal);
  assert.deepEqual([certificates.contextOf("any.test"), loads], [context, 1]);
  stored.set("a", "2").set("b", "1");
  await certificates.load(signal);
  assert.notEqual(certificates.contextOf("any.test"), context);
  assert.deepEqual([loads, certificates.problemOf("ns/b")], [3, undefined]);
});

test("Secrets are read by namespaces in turn, those that are new first, and used before all are read", async () => {
  const { cert, key } = await testPair();
  const data = { "tls.crt": base64(cert), "tls.key": base64(key) };
  const asked: string[] = [];
  const { promise: wait, resolve: goOn } = Promise.withResolvers<void>();
  const client = {
    async get(_: unknown, { namespace, name }: { namespace: string; name: string }) {
      asked.push(`${namespace}/${name}`);
      if (asked.length === 30) await wait;
      return { metadata: { name, resourceVersion: "1" }, data };
    },
  };
  const certificates = new Certificates({ client: client as never as Client, log: discardLogger });
  const naming = (namespace: string, names: readonly string[]): Ingress => ({
    metadata: { name: "i", namespace },
    spec: { tls: names.map((name) => ({ secretName: name, hosts: [`${name}.${namespace}`] })) },
  });
  const many = Array.from({ length: 40 }, (_, i) => `s${i}`);
  certificates.want([naming("greedy", many), naming("modest", ["a", "b"])]);
  const loading = certificates.load(new AbortController().signal);
  while (asked.length < 30) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(asked.slice(0, 5), ["greedy/s0", "modest/a", "greedy/s1", "modest/b", "greedy/s2"]);
  assert.ok(certificates.contextOf("b.modest"));
  goOn();
  await loading;
  assert.ok(certificates.contextOf("s39.greedy"));
  asked.length = 0;
  certificates.want([naming("greedy", many), naming("modest", ["a", "b", "c"])]);
  await certificates.load(new AbortController().signal);
  assert.deepEqual([asked[0], asked.length], ["modest/c", 43]);
});
