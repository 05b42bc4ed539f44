import assert from "node:assert/strict";
import { test } from "node:test";
import { startTestServer } from "../testing/start-test-server.ts";

/** With COX_TEST_LONG: 100,000 requests. */
const requests = process.env["COX_TEST_LONG"] === undefined ? 1_000 : 100_000;
const atATime = 20;

test("users are counted by what kind of name they have", async (t) => {
  const server = await startTestServer(t);
  for (const authorization of [`Bearer ${server.adminToken}`, "Bearer user-token", undefined])
    await server.request("GET", "/version", undefined, { authorization });
  const { text } = await server.request("GET", "/metrics");
  const names = [...text.matchAll(/^authenticated_user_requests\{username="([^"]*)"\}/gm)].map(([, name]) => name);
  assert.deepEqual(names.sort(), ["admin", "other"]);
});

test("clients' names, methods, paths and parameters that clients invent create no separate series", async (t) => {
  const server = await startTestServer(t);
  const series = async (): Promise<number> =>
    (await server.request("GET", "/metrics")).text.split("\n").filter((line) => line !== "" && !line.startsWith("#")).length;
  /** Requests that differ from all others, in varying parts. */
  const send = (n: number): Promise<unknown> => {
    const paths = [
      `/api/v1/namespaces/ns-${n}/configmaps`,
      `/api/v1/kind-${n}`,
      `/apis/group-${n}.example.com/v1/things`,
      `/path-${n}`,
      `/api/v1/namespaces/default/configmaps/name-${n}?pretty=${n}&param-${n}=1`,
      `/api/v1/namespaces/default/pods/p/sub-${n}`,
      `/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3D${n}`,
    ];
    const method = n % 5 === 0 ? `VERB${n % 9 === 0 ? "" : n}` : "GET";
    return server
      .request(method, paths[n % paths.length] as string, undefined, {
        "user-agent": `agent-${n}/1.0`,
        accept: `application/x-${n}, */*`,
      })
      .catch(() => {});
  };
  const all = async (first: number, last: number): Promise<void> => {
    await Promise.all(
      Array.from({ length: atATime }, async (_, i) => {
        for (let n = first + i; n < last; n += atATime) await send(n);
      }),
    );
  };
  // All kinds of requests have occurred before the series are counted.
  await all(0, requests / 2);
  const before = await series();
  await all(requests / 2, requests);
  const grown = (await series()) - before;
  // At most the buckets of a status code that occurred for the first time, instead of one series per request.
  assert.ok(grown < 100, `${requests / 2} requests made ${grown} series more`);
});
