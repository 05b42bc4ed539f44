import assert from "node:assert/strict";
import { get } from "node:https";
import type { TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { asyncListener } from "@coxswain/apimachinery/testing/async-listener";
import type { ApiServer } from "./apiservers.ts";
import { residentMb } from "./resident.ts";
import type { Stage } from "./stage.ts";

/** COX_TEST_LONG: 50 lists of 10,000 objects at once, half of them read at 1 kB a second for a minute. */
const size =
  process.env["COX_TEST_LONG"] === undefined
    ? { objects: 1_000, lists: 20, slowMs: 2_000 }
    : { objects: 10_000, lists: 50, slowMs: 60_000 };
/** Approximate size of a pod. */
const valueBytes = 3_000;
const mostMb = 1_024;
const slowBytes = 1_024;

/** Many large concurrent lists, half of them read slowly: the server's memory stays bounded and it serves other requests. */
export async function listTogether(t: TestContext, { apis }: Stage): Promise<void> {
  const [server] = apis.servers as [ApiServer];
  const { ca, token } = apis;
  const path = "/api/v1/namespaces/default/configmaps";
  await Promise.all(
    Array.from({ length: 16 }, async (_, i) => {
      for (let n = i; n < size.objects; n += 16) {
        const { code } = await server.request("POST", path, {
          metadata: { name: `item-${n}` },
          data: { a: "x".repeat(valueBytes) },
        });
        assert.equal(code, 201);
      }
    }),
  );

  /** @returns the number of bytes received, and whether the list was complete */
  const list = (slow: boolean): Promise<{ bytes: number; whole: boolean }> =>
    new Promise((resolve, reject) => {
      const sent = get(
        `${server.url}${path}`,
        { ca, headers: { authorization: `Bearer ${token}` }, agent: false },
        asyncListener(async (response) => {
          let bytes = 0;
          const end = performance.now() + size.slowMs;
          try {
            for await (const chunk of response) {
              bytes += (chunk as Buffer).length;
              while (slow && performance.now() < end && bytes > (size.slowMs - (end - performance.now())) * (slowBytes / 1_000))
                await delay(100);
            }
          } catch {
            // The server closed the connection.
          }
          resolve({ bytes, whole: response.complete });
        }),
      );
      sent.on("error", reject);
    });
  let most = 0;
  let slowest = 0;
  let listing = true;
  const watching = (async () => {
    while (listing) {
      most = Math.max(most, residentMb(server.pid));
      const start = performance.now();
      assert.equal((await server.request("GET", "/api/v1/namespaces/default")).code, 200);
      slowest = Math.max(slowest, performance.now() - start);
      await delay(50);
    }
  })();
  const lists = await Promise.all(Array.from({ length: size.lists }, (_, i) => list(i % 2 === 0)));
  listing = false;
  await watching;
  t.diagnostic(
    JSON.stringify({
      mostMb: Math.round(most),
      slowestMs: Math.round(slowest),
      whole: lists.filter(({ whole }) => whole).length,
    }),
  );
  assert.ok(most < mostMb, `the server took ${most} MB`);
  const fast = lists.filter((_, i) => i % 2 === 1);
  assert.ok(
    fast.every(({ whole, bytes }) => whole && bytes > size.objects * valueBytes),
    "who reads gets everything",
  );
}
