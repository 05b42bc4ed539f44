import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { configMaps } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { type AuthenticationInfo, ensureAuthenticationInfo, followAuthenticationInfo } from "./authentication-info.ts";

const pem = (name: string): string => `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----`;
const ofServer = (clientCa: string, allowedNames: string[] = ["a"]): AuthenticationInfo => ({
  clientCa,
  requestHeader: {
    ca: pem("proxies"),
    allowedNames,
    usernameHeaders: ["X-Remote-User"],
    groupHeaders: ["X-Remote-Group"],
    extraHeaderPrefixes: [],
  },
});

function bench(data?: Record<string, string>) {
  const client = newFakeClient();
  const metadata = { namespace: "kube-system", name: "extension-apiserver-authentication" };
  if (data !== undefined) client.put<KubeObject & { data: object }>(configMaps, { metadata, data });
  const published = (key: string) =>
    client.object<KubeObject & { data: Record<string, string> }>(configMaps, `kube-system/${metadata.name}`)?.data[key];
  return { client, published };
}

test("the authorities and names of other servers stay, each once", async () => {
  const { client, published } = bench({
    "client-ca-file": `${pem("one")}\n${pem("two")}\n`.replaceAll("\n", "\r\n"),
    "requestheader-allowed-names": '["b","a"]',
    "requestheader-username-headers": "not a list",
  });
  await ensureAuthenticationInfo(client, ofServer(`${pem("two")}\n${pem("three")}\n`, ["a", "c"]));
  assert.equal(published("client-ca-file"), `${pem("one")}\n${pem("two")}\n${pem("three")}\n`);
  assert.equal(published("requestheader-client-ca-file"), pem("proxies"));
  assert.equal(published("requestheader-allowed-names"), '["b","a","c"]');
  assert.equal(published("requestheader-username-headers"), '["X-Remote-User"]');
  assert.equal(published("requestheader-extra-headers-prefix"), "[]");
  await ensureAuthenticationInfo(client, ofServer(pem("one"), ["b"]));
  assert.equal(client.writes.length, 1, "nothing is missing");
});

test("each list of headers is joined with that of other servers", async () => {
  const { client, published } = bench({
    "requestheader-username-headers": '["X-Other-User"]',
    "requestheader-group-headers": '["X-Remote-Group","X-Other-Group"]',
    "requestheader-extra-headers-prefix": '["X-Other-"]',
  });
  await ensureAuthenticationInfo(client, ofServer(pem("one")));
  assert.equal(published("requestheader-username-headers"), '["X-Other-User","X-Remote-User"]');
  assert.equal(published("requestheader-group-headers"), '["X-Remote-Group","X-Other-Group"]');
  assert.equal(published("requestheader-extra-headers-prefix"), '["X-Other-"]');
});

test("a server without authorities publishes nothing, and keeps what others have published", async () => {
  const { client, published } = bench({ "client-ca-file": pem("one"), "requestheader-client-ca-file": pem("two") });
  await ensureAuthenticationInfo(client, { clientCa: undefined, requestHeader: undefined });
  assert.equal(client.actions.length, 0);
  await ensureAuthenticationInfo(client, { ...ofServer(pem("three")), clientCa: undefined });
  assert.deepEqual(
    [published("client-ca-file"), published("requestheader-client-ca-file")],
    [pem("one"), `${pem("two")}\n${pem("proxies")}\n`],
  );
});

test("changes are published one after the other, again after a failure and each minute, until the server stops", async () => {
  const { client, published } = bench();
  const clock = newFakeClock();
  const stop = new AbortController();
  let current = pem("first");
  const errors: unknown[] = [];
  const log = { ...discardLogger, error: (_: string, err: unknown) => void errors.push(err) };
  const info = () => ofServer(current);
  let running = 0;
  let most = 0;
  const slow = {
    async get(...call: Parameters<Client["get"]>) {
      most = Math.max(most, ++running);
      await settle();
      running--;
      if (errors.length === 0) throw new Error("the store is full");
      return client.get(...call);
    },
    create: client.create.bind(client),
    update: client.update.bind(client),
  } as unknown as Client;
  const publish = followAuthenticationInfo({ client: slow, info, clock, log, signal: stop.signal });
  publish();
  current = pem("second");
  publish();
  await settle(40);
  assert.deepEqual([errors.length, most, published("client-ca-file")], [1, 1, pem("second")]);
  client.remove(configMaps, "kube-system/extension-apiserver-authentication");
  await clock.advance(60_000);
  await settle(20);
  assert.equal(published("client-ca-file"), pem("second"));
  stop.abort();
  assert.equal(clock.waiting, 0);
});

test("an attempt that the end of the server interrupts is no error", async () => {
  const stop = new AbortController();
  const errors: unknown[] = [];
  const log = { ...discardLogger, error: (_: string, err: unknown) => void errors.push(err) };
  const client = {
    get: async () => {
      stop.abort();
      throw stop.signal.reason;
    },
  } as unknown as Client;
  const options = { client, info: () => ofServer(pem("a")), clock: newFakeClock(), log, signal: stop.signal };
  followAuthenticationInfo(options)();
  await settle();
  assert.deepEqual([stop.signal.aborted, errors], [true, []]);
});

test("a list that is none is replaced by this server's own", async () => {
  for (const value of ['{"a":1}', "7", "null"]) {
    const { client, published } = bench({ "requestheader-allowed-names": value });
    await ensureAuthenticationInfo(client, ofServer(pem("one")));
    assert.equal(published("requestheader-allowed-names"), '["a"]', value);
  }
});
