import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { connect as connectTls, type TLSSocket } from "node:tls";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { check } from "../../framework/history/check.ts";
import { newRecording, newRecordingClient, type RecordingClient } from "../../framework/history/recorder.ts";
import { waitFor } from "../../framework/wait-for.ts";
import type { ApiServer } from "./apiservers.ts";
import { residentMb } from "./resident.ts";
import type { Stage } from "./stage.ts";
import { configMaps } from "./workload.ts";

/**
 * COX_TEST_LONG: 200 watchers stop reading while 20,000 events are sent, until the server disconnects them after a minute. The
 * same number of events is sent before without them, so that caches and heap have their normal size and further growth is due to
 * the watchers.
 */
const long = process.env["COX_TEST_LONG"] !== undefined;
const size = long
  ? { stalled: 200, reading: 20, events: 20_000, valueBytes: 500 }
  : { stalled: 20, reading: 5, events: 600, valueBytes: 20_000 };
const writers = 16;
const mostGrowthMb = 100;

/** Watchers that stop reading are terminated without dropped events, and other clients are not affected. */
export async function stopReading(t: TestContext, { apis, history, namespaces }: Stage): Promise<void> {
  const [server] = apis.servers as [ApiServer];
  const [, namespace] = namespaces;
  const recording = newRecording();
  const newClient = (name: string): RecordingClient => {
    const client = newRecordingClient({
      name,
      recording,
      resource: configMaps,
      ca: apis.ca,
      token: apis.token,
      url: () => server.url,
    });
    t.after(() => client.close());
    return client;
  };
  await history.caughtUp();
  const from = history.revision;

  // Maximum delay between a write's acknowledgement and its event at watchers that read.
  const acknowledged = new Map<string, number>();
  const lags: number[] = [];
  const ending = new AbortController();
  const reading = Array.from({ length: size.reading }, (_, i) =>
    newClient(`reader-${i}`).watch(`${namespace}/`, { revision: from, signal: ending.signal }, ({ at, type, object }) => {
      if (type === "BOOKMARK") return;
      lags.push(at - (acknowledged.get(object.metadata.resourceVersion as string) ?? at));
    }),
  );
  const write = async (client: RecordingClient, n: number): Promise<void> => {
    const name = `item-${n % (writers * 4)}`;
    const object = {
      ...common,
      metadata: { name, namespace },
      data: { tag: `tag-${n}`, filling: "x".repeat(size.valueBytes) },
    } as KubeObject;
    const { code, answer } = n < writers * 4 ? await client.create(object) : await client.update(object);
    assert.ok(code === 200 || code === 201, `a write is answered ${code}`);
    acknowledged.set(answer?.metadata.resourceVersion as string, performance.now());
  };
  const clients = Array.from({ length: writers }, (_, i) => newClient(`writer-${i}`));
  const all = (first: number, last: number): Promise<unknown> =>
    Promise.all(
      clients.map(async (client, i) => {
        for (let n = first + i; n < last; n += writers) await write(client, n);
      }),
    );
  const start = residentMb(server.pid);
  await all(0, size.events);
  await history.caughtUp();
  const before = residentMb(server.pid);

  const stalledFrom = history.revision;
  const stalled = await Promise.all(
    Array.from({ length: size.stalled }, () =>
      openStalled(server, apis, `/api/v1/namespaces/${namespace}/configmaps?watch=true&resourceVersion=${stalledFrom}`),
    ),
  );
  t.after(() => {
    for (const { socket } of stalled) socket.destroy();
  });
  await all(size.events, 2 * size.events);
  await history.caughtUp();
  const growth = residentMb(server.pid) - before;

  // They resume reading: buffered events arrive complete and in order, followed by either all others or the end of the watch.
  if (long) {
    // An unread socket does not notice that it was closed, so the server's metric is checked.
    const left = `kind="ConfigMap"} ${size.reading}\n`;
    await waitFor("the server to give them up", async () => (await server.request("GET", "/metrics")).text.includes(left));
  }
  const seen = await Promise.all(stalled.map((watcher) => watcher.drain(size.events)));
  const shown = history.versions(configMaps).filter(({ revision, key }) => revision > from && key.startsWith(`${namespace}/`));
  const want = shown.map(({ revision }) => revision).filter((revision) => revision > stalledFrom);
  for (const revisions of seen)
    assert.deepEqual(revisions, want.slice(0, revisions.length), "a part from the start, without a gap");

  ending.abort();
  await Promise.all(reading);
  lags.sort((a, b) => a - b);
  const p99 = Math.round(lags[Math.floor(lags.length * 0.99)] ?? 0);
  t.diagnostic(
    JSON.stringify({
      events: want.length,
      lagP99Ms: p99,
      rssGrowthMb: Math.round(growth),
      rssGrowthWithoutThemMb: Math.round(before - start),
      endedEarly: seen.filter((s) => s.length < want.length).length,
    }),
  );
  assert.equal(lags.length, shown.length * size.reading, "the others saw everything");
  assert.deepEqual(check(recording, history.versions(configMaps)), []);
  if (long) {
    assert.ok(
      seen.every((revisions) => revisions.length < want.length),
      "who did not read for a minute was ended",
    );
    assert.ok(p99 <= 1_000, `lag p99 ${p99} ms`);
    assert.ok(growth <= mostGrowthMb, `grew by ${growth} MB`);
  }
}

const common = { apiVersion: "v1", kind: "ConfigMap" };

/** A watch whose client reads nothing, so that the buffers between it and the server fill up. */
async function openStalled(server: ApiServer, { ca, token }: { ca: string; token: string }, path: string) {
  const socket: TLSSocket = connectTls({
    host: "127.0.0.1",
    port: Number(new URL(server.url).port),
    ca,
    ALPNProtocols: ["http/1.1"],
  });
  await new Promise((resolve, reject) => {
    socket.once("secureConnect", resolve);
    socket.once("error", reject);
  });
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const revisions: number[] = [];
  let rest = "";
  let onData = (): void => {};
  socket.setEncoding("utf8");
  socket.on("error", () => {});
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`);
  // Stops reading after the response headers.
  await new Promise<void>((resolve) => {
    socket.on("data", (chunk: string) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() as string;
      // Skips headers and chunk lengths between events; the server writes complete events.
      for (const line of lines)
        if (line.startsWith('{"type"')) revisions.push(Number(/"resourceVersion":"(\d+)"/.exec(line)?.[1]));
      onData();
      resolve();
    });
  });
  socket.pause();
  return {
    socket,
    closed,
    /** Resumes reading. @returns the revisions received, after `count` of them or the end of the watch */
    async drain(count: number): Promise<number[]> {
      const enough = new Promise<void>((resolve) => {
        onData = () => {
          if (revisions.length >= count) resolve();
        };
      });
      socket.resume();
      onData();
      await Promise.race([closed, enough]);
      socket.destroy();
      return revisions;
    },
  };
}
