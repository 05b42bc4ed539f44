import assert from "node:assert/strict";
import { test } from "node:test";
import { startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newEtcdClient } from "../storage/etcd/client.ts";
import { startEtcdFront } from "../testing/etcd-front.ts";
import { startTestServer } from "../testing/start-test-server.ts";

test("etcd's progress on watches is counted for each cached resource", async (t) => {
  const etcd = await startEtcd();
  const front = await startEtcdFront(t, etcd.endpoint, "3.4.23");
  const client = newEtcdClient({ servers: [etcd.endpoint] });
  t.after(() => client.close());
  const server = await startTestServer(t, [`--etcd-servers=${front.endpoint}`]);
  // Enabled only now, with few writes: the etcd behind the proxy may send progress ahead of its events.
  front.version = "3.5.13";
  front.cut();
  const counted = async (type: string): Promise<number> => {
    const { text } = await server.request("GET", "/metrics");
    const series = `etcd_bookmark_counts{resource="${type}"} `;
    const line = text.split("\n").find((line) => line.startsWith(series));
    return Number(line?.slice(series.length) ?? 0);
  };
  await waitFor(
    async () => {
      // A write outside of the prefix makes a consistent read request progress.
      await client.put("/elsewhere", Buffer.from("1"));
      await server.request("GET", "/api/v1/namespaces");
      return (await counted("*core.Namespace")) > 0;
    },
    { what: "a bookmark" },
  );
  assert.ok((await counted("*apps.Deployment")) > 0, "one watch is everybody's");
  assert.equal(await counted("*core.Event"), 0, "events are not cached");
  await server.stop(); // before the proxy, or it waits for etcd in vain
});
