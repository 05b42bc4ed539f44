/** Requests for compacted revisions, and for revisions that do not exist yet. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { WatchEventDecoder } from "@coxswain/apimachinery/objects/codec/stream";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newEtcdClient } from "../storage/etcd/client.ts";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const maps = "/api/v1/namespaces/default/configmaps";
const gone = "The provided continue parameter is too old to display a consistent list result.";

describe("without a watch cache", () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer(undefined, ["--watch-cache=false"]);
  });
  after(() => server.stop());

  const create = async (name: string): Promise<number> => {
    const { body } = await server.request("POST", maps, { metadata: { name, labels: { of: "expiry" } } });
    return Number(body.metadata.resourceVersion);
  };
  const names = (items: { metadata: { name: string } }[]): string[] => items.map(({ metadata }) => metadata.name);
  const events = async (query: string) => {
    const { code, text, body } = await server.request("GET", `${maps}?watch=1&labelSelector=of=expiry&${query}`);
    return { code, body, events: code === 200 ? new WatchEventDecoder("application/json").push(Buffer.from(text)) : [] };
  };

  test("a compacted revision is 410 to lists, watches and continue tokens, and the new token continues", async () => {
    const first = await create("expiry-a");
    for (const name of ["expiry-b", "expiry-c"]) await create(name);
    const requested = `limit=1&resourceVersion=${first}&resourceVersionMatch=NotOlderThan`;
    const page = await server.request("GET", `${maps}?labelSelector=of=expiry&${requested}`);
    assert.deepEqual(names(page.body.items), ["expiry-a"]);
    const latest = await create("expiry-ab");
    const client = newEtcdClient({ servers: [server.etcdEndpoint] });
    await client.compact(latest);
    client.close();

    const continued = (token: string) =>
      server.request("GET", `${maps}?labelSelector=of=expiry&limit=1&continue=${encodeURIComponent(token)}`);
    const expired = await continued(page.body.metadata.continue);
    assert.partialDeepStrictEqual(expired.body, { kind: "Status", code: 410, reason: "Expired" });
    assert.ok(expired.body.message.startsWith(gone), expired.body.message);
    const rest = await continued(expired.body.metadata.continue);
    assert.equal(rest.code, 200);
    assert.deepEqual(names(rest.body.items), ["expiry-ab"], "what is there now, after where the old list stopped");
    assert.ok(Number(rest.body.metadata.resourceVersion) >= latest);

    for (const query of [`resourceVersion=${first}&limit=1`, `resourceVersion=${first}&resourceVersionMatch=Exact`]) {
      const list = await server.request("GET", `${maps}?${query}`);
      assert.partialDeepStrictEqual(list.body, {
        code: 410,
        reason: "Expired",
        message: "The resourceVersion for the provided list is too old.",
      });
    }
    assert.equal((await server.request("GET", `${maps}?${requested}`)).code, 200, "newer data is what it asks for");

    const watched = await events(`resourceVersion=${first}&timeoutSeconds=2`);
    assert.equal(watched.code, 200);
    hasFields(watched.events, [{ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } }]);
  });

  test("a watch of a version that etcd has not reached is 504, so that its client lists again", async () => {
    const now = await create("expiry-now");
    const { code, body } = await events(`resourceVersion=${now + 1_000_000}&timeoutSeconds=1`);
    assert.equal(code, 504);
    hasFields(body, {
      reason: "Timeout",
      details: { causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }] },
    });
  });
});

test("a continue token expires when its revision is compacted, though the watch cache still holds the changes since", async (t) => {
  const server = await startTestServer(t, ["--etcd-compaction-interval=200ms"]);
  for (const name of ["token-a", "token-b"]) await server.request("POST", maps, { metadata: { name, labels: { of: "token" } } });
  const page = (token: string) =>
    server.request("GET", `${maps}?labelSelector=of=token&limit=1&continue=${encodeURIComponent(token)}`);
  const first = await page("");
  const token: string = first.body.metadata.continue;
  assert.deepEqual((await page(token)).body.items?.length, 1);
  await waitFor(async () => {
    // etcd must have new revisions.
    const headers = { "content-type": "application/merge-patch+json" };
    await server.request("PATCH", `${maps}/token-a`, { data: { at: randomUUID() } }, headers);
    return (await page(token)).code === 410;
  });
  const expired = await page(token);
  assert.ok(expired.body.message.startsWith(gone), expired.body.message);
  assert.deepEqual((await page(expired.body.metadata.continue)).body.items?.length, 1);
});

test("without the gate APIListChunking a list is whole, without RemainingItemCount it has no such count", async (t) => {
  const whole = await startTestServer(t, ["--feature-gates=APIListChunking=false"]);
  const { body } = await whole.request("GET", "/api/v1/namespaces?limit=1");
  assert.ok(body.items.length >= 4);
  assert.equal(body.metadata.continue, undefined);
  const uncounted = await startTestServer(t, ["--feature-gates=RemainingItemCount=false"]);
  const page = await uncounted.request("GET", "/api/v1/namespaces?limit=1");
  assert.equal(page.body.items.length, 1);
  assert.ok(page.body.metadata.continue);
  assert.equal(page.body.metadata.remainingItemCount, undefined);
});

test("a list not older than a version beyond the server's is 504 with Retry-After", async (t) => {
  const server = await startTestServer(t);
  const query = "resourceVersion=999999999&resourceVersionMatch=NotOlderThan&limit=1";
  const { code, headers, body } = await server.request("GET", `${maps}?${query}`);
  assert.deepEqual([code, headers["retry-after"]], [504, "1"]);
  assert.match(body.message, /^Timeout: Too large resource version: 999999999, current: \d+$/);
  hasFields(body.details, {
    retryAfterSeconds: 1,
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
  });
});

test("a watch resumes from a version that only etcd still knows: from before the server started", async (t) => {
  const prefix = `--etcd-prefix=/restarted-${randomUUID()}`;
  const first = await startTestServer(undefined, [prefix]);
  const versions: string[] = [];
  for (const name of ["a", "b", "c"]) {
    const { body } = await first.request("POST", maps, { metadata: { name, labels: { of: "restart" } } });
    versions.push(body.metadata.resourceVersion);
  }
  await first.request("DELETE", `${maps}/b`);
  await first.stop();
  const second = await startTestServer(t, [prefix]);
  const path = `${maps}?watch=1&labelSelector=of=restart&timeoutSeconds=1&resourceVersion=${versions[0]}`;
  const { code, text } = await second.request("GET", path);
  assert.equal(code, 200);
  assert.deepEqual(
    new WatchEventDecoder("application/json").push(Buffer.from(text)).map(({ type, object }) => [type, object.metadata.name]),
    [
      ["ADDED", "b"],
      ["ADDED", "c"],
      ["DELETED", "b"],
    ],
  );
});
