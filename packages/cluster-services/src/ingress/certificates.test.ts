import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { Ingress } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
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
