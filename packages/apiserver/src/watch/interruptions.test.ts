import assert from "node:assert/strict";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { startEtcd, startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { pauseProcess } from "@coxswain/apimachinery/testing/pause-process";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newEtcdClient } from "../storage/etcd/client.ts";
import { openStorage } from "../storage/open.ts";
import { aConfigMap, keys, suiteResource, withData } from "../storage/testing.ts";

let prefixes = 0;

/** A TCP proxy to etcd that can be cut and blocked. */
async function aProxy(t: { after(fn: () => void): void }, target: string) {
  const sockets = new Set<Socket>();
  let open = true;
  const server = createServer((client) => {
    if (!open) {
      client.destroy();
      return;
    }
    const upstream = connect(Number(new URL(target).port), "127.0.0.1");
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.pipe(to);
      from.on("error", () => {});
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  t.after(() => {
    cut();
    server.close();
  });
  return {
    endpoint: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    cut,
    close() {
      open = false;
      cut();
    },
    open() {
      open = true;
    },
  };
}

function aStorage(t: { after(fn: () => void): void }, endpoint: string, prefix: string) {
  return openStorage({
    etcd: { servers: [endpoint], prefix },
    resources: [suiteResource],
    clock: realClock,
    log: discardLogger,
  }).then(async (set) => {
    t.after(() => set.stop());
    await set.whenReady();
    return set.for(suiteResource);
  });
}

test("a watcher sees each of 600 writes once, in order, while its connection to etcd is cut again and again", async (t) => {
  const etcd = await startEtcd();
  const prefix = `/interrupted-${prefixes++}`;
  const proxy = await aProxy(t, etcd.endpoint);
  const reader = await aStorage(t, proxy.endpoint, prefix);
  const writer = await aStorage(t, etcd.endpoint, prefix);
  const stream = await reader.watch({ prefix: "", signal: AbortSignal.timeout(240_000) });

  const written: number[] = [];
  for (let i = 0; i < 600; i++) {
    const key = `web/p${i % 50}`;
    const entry = await writer.guaranteedUpdate(
      key,
      (e) => (e === undefined ? aConfigMap(`p${i % 50}`) : withData(e, { n: String(i) })),
      { ignoreNotFound: true },
    );
    written.push(entry.revision);
    if (i % 40 === 20) proxy.cut();
  }
  const seen: number[] = [];
  while (seen.length < written.length && (await stream.ready())) {
    for (const event of stream.take()) if (event.type === "ADDED" || event.type === "MODIFIED") seen.push(event.entry.revision);
  }
  stream.stop();
  assert.deepEqual(seen, written);
  const fresh = await reader.list({ prefix: "" });
  assert.equal(fresh.entries.length, 50);
});

test("when history was compacted while etcd was unreachable, watches end and the cache is correct again", async (t) => {
  const etcd = await startOwnEtcd(t);
  const proxy = await aProxy(t, etcd.endpoint);
  const reader = await aStorage(t, proxy.endpoint, "/registry");
  const writer = await aStorage(t, etcd.endpoint, "/registry");
  await writer.create("web/a", aConfigMap("a"));
  await writer.create("web/b", aConfigMap("b"));
  await reader.get("web/b");
  const stream = await reader.watch({
    prefix: "",
    revision: await reader.currentRevision(),
    signal: AbortSignal.timeout(60_000),
  });

  proxy.close();
  await writer.delete("web/a");
  await writer.create("web/c", aConfigMap("c"));
  const client = newEtcdClient({ servers: [etcd.endpoint] });
  t.after(() => client.close());
  const { revision } = await client.range({ key: "x" });
  await client.compact(revision);
  proxy.open();

  while (await stream.ready()) stream.take();
  await waitFor(async () => keys((await reader.list({ prefix: "", revision: 0 })).entries).join() === "web/b,web/c", {
    what: "the cache to be filled again",
  });
  assert.deepEqual(keys((await reader.list({ prefix: "" })).entries), ["web/b", "web/c"]);
  const late = await reader.watch({ prefix: "", revision: 2, signal: AbortSignal.timeout(60_000) });
  await late.ready();
  const [event] = late.take();
  assert.match(event?.type === "ERROR" ? event.error.message : String(event?.type), /too old resource version/);
  late.stop();
});

test("a deletion at exactly the compacted revision is not missed", async (t) => {
  const etcd = await startOwnEtcd(t);
  const proxy = await aProxy(t, etcd.endpoint);
  const reader = await aStorage(t, proxy.endpoint, "/registry");
  const writer = await aStorage(t, etcd.endpoint, "/registry");
  const client = newEtcdClient({ servers: [etcd.endpoint] });
  t.after(() => client.close());
  await writer.create("web/a", aConfigMap("a"));
  const { revision: before } = await writer.create("web/b", aConfigMap("b"));
  await reader.get("web/b");

  proxy.close();
  const { revision } = await writer.delete("web/a");
  await client.compact(revision);
  await writer.create("web/c", aConfigMap("c"));
  proxy.open();
  await waitFor(async () => keys((await reader.list({ prefix: "", revision: 0 })).entries).join() === "web/b,web/c", {
    what: "the cache to know of the deletion",
  });

  const uncached = await openStorage({
    etcd: { servers: [etcd.endpoint] },
    watchCache: false,
    clock: realClock,
    log: discardLogger,
  });
  t.after(() => uncached.stop());
  for (const [from, want] of [
    [before, "ERROR"],
    [revision, "ADDED"],
  ] as const) {
    const stream = await uncached.for(suiteResource).watch({ prefix: "", revision: from, signal: AbortSignal.timeout(60_000) });
    assert.ok(await stream.ready());
    const [event] = stream.take();
    assert.equal(event?.type, want);
    stream.stop();
  }
});

test("a paused etcd causes errors and not hangs, and everything continues after it", async (t) => {
  const etcd = await startOwnEtcd(t);
  const client = newEtcdClient({ servers: [etcd.endpoint], deadlineMs: 300 });
  t.after(() => client.close());
  // The first call establishes the connection, which may take longer than the short timeout.
  await waitFor(() => client.put("/a", Buffer.from("1")).then(() => true), { what: "etcd to take it" });
  await pauseProcess(etcd.pid);
  try {
    await assert.rejects(client.range({ key: "/a" }), (err) => (err as { reason?: string }).reason === "deadline");
  } finally {
    process.kill(etcd.pid, "SIGCONT");
  }
  await waitFor(async () => (await client.range({ key: "/a" }).catch(() => undefined))?.kvs.length === 1, {
    what: "etcd to answer again",
  });
});
