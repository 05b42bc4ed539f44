import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { gatherFacts } from "./facts.ts";

const nowhere = { folders: [], data: [] };

test("a failed request is named, and the other facts are still collected", async () => {
  const client = {
    raw: async (_: string, path: string) => {
      if (path === "/metrics") throw new Error("cannot read", { cause: new Error("socket hang up") });
      if (path.startsWith("/readyz"))
        return { status: 500, headers: {}, body: Buffer.from("[+]ping ok\n[-]etcd failed: reason withheld\n") };
      return { status: 200, headers: { date: new Date().toUTCString() }, body: Buffer.from('{"gitVersion":"v1.23.0"}') };
    },
    list: async ({ resource }: { resource: string }) => {
      if (resource === "nodes") throw new Error("nodes is forbidden");
      return { items: [] };
    },
  } as unknown as Client;
  const facts = await gatherFacts({ client, ...nowhere });
  assert.deepEqual(facts.unread, ["/metrics: cannot read: socket hang up", "nodes: nodes is forbidden"]);
  assert.deepEqual(
    [facts.unready, facts.serverVersion, facts.unreachable],
    [["etcd: failed: reason withheld"], "v1.23.0", undefined],
  );
  assert.ok(Math.abs(facts.clockMs ?? 1e9) < 5_000);
});

test("without an answer of the server the facts of this machine are collected", async () => {
  const refuse = { raw: () => Promise.reject(new Error("connect ECONNREFUSED 127.0.0.1:1")) } as unknown as Client;
  const facts = await gatherFacts({ client: refuse, folders: [], data: ["/"] });
  assert.equal(facts.unreachable, "connect ECONNREFUSED 127.0.0.1:1");
  assert.equal(facts.disks[0]?.path, "/");
  assert.equal((await gatherFacts({ client: undefined, noClient: "no admin.conf", ...nowhere })).unreachable, "no admin.conf");
});
