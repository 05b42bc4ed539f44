import assert from "node:assert/strict";
import { once } from "node:events";
import type { TestContext } from "node:test";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { check } from "../../framework/history/check.ts";
import { newRecording, newRecordingClient, type RecordingClient } from "../../framework/history/recorder.ts";
import type { SeenEvent } from "../../framework/history/records.ts";
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
export async function stopReading(t: TestContext, stage: Stage): Promise<void> {
  const { apis, history } = stage;
  const namespace = stage.namespaces[1];
  const [server] = apis.servers;
  assert.ok(server);
  await history.caughtUp();
  const from = history.revision;
  const clients = new ReadersAndWriters(t, stage, server, from);
  const start = residentMb(server.pid);
  await clients.write(0, size.events);
  await history.caughtUp();
  const before = residentMb(server.pid);

  const stalledFrom = history.revision;
  const path = `/api/v1/namespaces/${namespace}/configmaps?watch=true&resourceVersion=${stalledFrom}`;
  const stalled = await Promise.all(Array.from({ length: size.stalled }, () => StalledWatcher.open(server, apis, path)));
  t.after(() => {
    for (const watcher of stalled) watcher.close();
  });
  await clients.write(size.events, 2 * size.events);
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

  const lags = await clients.finish();
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
  assert.deepEqual(check(clients.recording, history.versions(configMaps)), []);
  if (long) {
    assert.ok(
      seen.every((revisions) => revisions.length < want.length),
      "who did not read for a minute was ended",
    );
    assert.ok(p99 <= 1_000, `lag p99 ${p99} ms`);
    assert.ok(growth <= mostGrowthMb, `grew by ${growth} MB`);
  }
}

/** The clients that must not be affected: writers, and watchers that read all events. */
class ReadersAndWriters {
  readonly recording = newRecording();
  readonly #namespace: string;
  readonly #writers: readonly RecordingClient[];
  /** Time of the acknowledgement, by resourceVersion. */
  readonly #acknowledged = new Map<string, number>();
  readonly #lags: number[] = [];
  readonly #ending = new AbortController();
  readonly #reading: readonly Promise<unknown>[];

  /** @param from revision from which the readers watch */
  constructor(t: TestContext, { apis, namespaces }: Stage, server: ApiServer, from: number) {
    this.#namespace = namespaces[1];
    const newClient = (name: string): RecordingClient => {
      const client = newRecordingClient({
        ...{ name, recording: this.recording, resource: configMaps, ca: apis.ca, token: apis.token },
        url: () => server.url,
      });
      t.after(() => client.close());
      return client;
    };
    const { signal } = this.#ending;
    this.#reading = Array.from({ length: size.reading }, (_, i) =>
      newClient(`reader-${i}`).watch(`${this.#namespace}/`, { revision: from, signal }, (event) => this.#receive(event)),
    );
    this.#writers = Array.from({ length: writers }, (_, i) => newClient(`writer-${i}`));
  }

  /** Writes objects with the numbers from `first` to `last` - 1. */
  async write(first: number, last: number): Promise<void> {
    await Promise.all(
      this.#writers.map(async (client, i) => {
        for (let n = first + i; n < last; n += writers) await this.#writeOne(client, n);
      }),
    );
  }

  /** Ends the watches. @returns milliseconds from each write's acknowledgement to its event at each reader, ascending */
  async finish(): Promise<number[]> {
    this.#ending.abort();
    await Promise.all(this.#reading);
    return this.#lags.toSorted((a, b) => a - b);
  }

  #receive({ at, type, object }: SeenEvent): void {
    if (type === "BOOKMARK") return;
    this.#lags.push(at - (this.#acknowledged.get(object.metadata.resourceVersion ?? "") ?? at));
  }

  async #writeOne(client: RecordingClient, n: number): Promise<void> {
    const metadata = { name: `item-${n % (writers * 4)}`, namespace: this.#namespace };
    const data = { tag: `tag-${n}`, filling: "x".repeat(size.valueBytes) };
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata, data };
    const { code, answer } = n < writers * 4 ? await client.create(object) : await client.update(object);
    assert.ok(code === 200 || code === 201, `a write is answered ${code}`);
    this.#acknowledged.set(answer?.metadata.resourceVersion ?? "", performance.now());
  }
}

/** A watch whose client reads nothing, so that the buffers between it and the server fill up. */
class StalledWatcher {
  readonly #socket: TLSSocket;
  readonly #closed: Promise<void>;
  readonly #revisions: number[] = [];
  #rest = "";
  #onData = (): void => {};

  private constructor(socket: TLSSocket) {
    this.#socket = socket;
    this.#closed = new Promise((resolve) => socket.once("close", () => resolve()));
    socket.setEncoding("utf8");
    socket.on("error", () => {});
    socket.on("data", (chunk: string) => this.#receive(chunk));
  }

  /** Resolves after the response headers; from then on it reads nothing. */
  static async open(server: ApiServer, { ca, token }: { ca: string; token: string }, path: string): Promise<StalledWatcher> {
    const port = Number(new URL(server.url).port);
    const socket = connectTls({ host: "127.0.0.1", port, ca, ALPNProtocols: ["http/1.1"] });
    await once(socket, "secureConnect");
    const watcher = new StalledWatcher(socket);
    const headers = once(socket, "data");
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n\r\n`);
    await headers;
    socket.pause();
    return watcher;
  }

  /** Resumes reading. @returns the revisions received, after `count` of them or the end of the watch */
  async drain(count: number): Promise<readonly number[]> {
    const enough = new Promise<void>((resolve) => {
      this.#onData = () => {
        if (this.#revisions.length >= count) resolve();
      };
    });
    this.#socket.resume();
    this.#onData();
    await Promise.race([this.#closed, enough]);
    this.#socket.destroy();
    return this.#revisions;
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(chunk: string): void {
    const lines = (this.#rest + chunk).split("\n");
    this.#rest = lines.pop() ?? "";
    // Skips headers and chunk lengths between events; the server writes complete events.
    for (const line of lines)
      if (line.startsWith('{"type"')) this.#revisions.push(Number(/"resourceVersion":"(\d+)"/.exec(line)?.[1]));
    this.#onData();
  }
}
