import { setTimeout as delay } from "node:timers/promises";
import { check } from "../../framework/history/check.ts";
import type { EtcdHistory } from "../../framework/history/etcd-history.ts";
import { newRecording, newRecordingClient, type RecordingClient } from "../../framework/history/recorder.ts";
import type { Recording, Resource } from "../../framework/history/records.ts";
import { newTimeline } from "../../framework/history/timeline.ts";
import { waitFor } from "../../framework/wait-for.ts";
import { startInformer } from "./informer.ts";
import { type Outcome, RandomRequests, random, type Scope } from "./random-requests.ts";

export const configMaps: Resource = { root: "/api/v1", plural: "configmaps", folder: "configmaps" };

/** Clients that write, read and watch concurrently, on all servers, with every method of the API. */
export interface Workload {
  /** Acknowledged writes so far. */
  readonly acknowledged: number;
  /** What its clients have seen so far. */
  readonly recording: Recording;
  /** Starts a watcher this many revisions before the current one (after it, if negative). */
  addWatcher(revisionsBack: number): void;
  /**
   * Stops writing and reading, waits until every watcher has exactly etcd's state, and checks the whole history.
   * @returns violations and statistics
   */
  finish(): Promise<{ broken: string[]; figures: Figures }>;
  /** Stops everything immediately, after a failed test. */
  stop(): Promise<void>;
}

export interface Figures {
  acknowledged: number;
  refused: number;
  unanswered: number;
  reads: number;
  events: number;
  bookmarks: number;
  watches: number;
  relists: number;
}

export interface WorkloadOptions {
  apis: { readonly servers: readonly { readonly url: string }[]; readonly ca: string; readonly token: string };
  history: EtcdHistory;
  writers: number;
  readers: number;
  watchers: number;
  /** Two existing namespaces. */
  namespaces: readonly [string, string];
  names?: number;
  /** Pause between two requests of one client; the default is for short runs, which are not to saturate the CPU. */
  paceMs?: number;
  /** After which a client gives up a request, and a watch that has not ended by itself; default 15 s. */
  timeoutMs?: number;
}

const catchUpMs = 60_000;

/**
 * Starts writers, readers and watchers over the servers, each with a connection of its own, which moves to the next server after
 * a failure, and now and then without one.
 */
export function startWorkload(options: WorkloadOptions): Workload {
  const workload = new RandomWorkload(options);
  workload.start();
  return workload;
}

class RandomWorkload implements Workload {
  readonly recording = newRecording();
  readonly #options: WorkloadOptions;
  readonly #requests: RandomRequests;
  readonly #stopping = new AbortController();
  readonly #clients: RecordingClient[] = [];
  /** Watchers that listed first, so that they know the whole state. */
  readonly #watchers: (Scope & { readonly informer: ReturnType<typeof startInformer> })[] = [];
  /** Watchers from a past revision, which do not know the objects that existed before. */
  readonly #followers: ReturnType<typeof startInformer>[] = [];
  #loops: Promise<void>[] = [];

  constructor(options: WorkloadOptions) {
    this.#options = options;
    this.#requests = new RandomRequests(options.history, options.namespaces, options.names ?? 12);
  }

  start(): void {
    const { writers, readers, watchers } = this.#options;
    const requests = this.#requests;
    this.#loops = [
      ...Array.from({ length: writers }, (_, i) => this.#loop(`writer-${i}`, (client) => requests.write(client))),
      ...Array.from({ length: readers }, (_, i) => this.#loop(`reader-${i}`, (client) => requests.read(client))),
    ];
    for (let i = 0; i < watchers; i++) {
      const scope = requests.scope();
      this.#watchers.push({ ...scope, informer: this.#newInformer(scope) });
    }
  }

  get acknowledged(): number {
    return this.recording.writes.filter(isDone).length;
  }

  addWatcher(revisionsBack: number): void {
    const from = Math.max(this.#options.history.revision - revisionsBack, 1);
    this.#followers.push(this.#newInformer(this.#requests.scope(), from));
  }

  async finish(): Promise<{ broken: string[]; figures: Figures }> {
    this.#stopping.abort();
    await Promise.all(this.#loops);
    const { history } = this.#options;
    await history.caughtUp();
    const timeline = newTimeline(history.versions(configMaps));
    const broken: string[] = [];
    for (const { informer, prefix, selection } of this.#watchers) {
      const want = timeline
        .state(prefix, history.revision)
        .filter(({ object }) => object !== undefined && selection.matches(object))
        .map(({ key, revision }) => `${key}@${revision}`)
        .sort();
      const held = (): string =>
        [...informer.state]
          .map(([key, revision]) => `${key}@${revision}`)
          .sort()
          .join();
      const same = await waitFor("a watcher to catch up", async () => held() === want.join(), {
        timeoutMs: catchUpMs,
      }).catch(() => false);
      if (!same)
        broken.push(`a watcher of ${prefix || "everything"} ${selection.query} ended with ${held()} instead of ${want.join()}`);
    }
    await this.stop();
    const relists = this.#watchers.reduce((sum, { informer }) => sum + informer.relists - 1, 0);
    return {
      broken: [...broken, ...check(this.recording, timeline.versions)],
      figures: { ...figuresOf(this.recording), relists },
    };
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([
      ...this.#loops,
      ...this.#watchers.map(({ informer }) => informer.stop()),
      ...this.#followers.map((informer) => informer.stop()),
    ]);
    for (const client of this.#clients) client.close();
  }

  /** @returns a client, and `move`, which switches it to the next server */
  #newClient(name: string): { client: RecordingClient; move: () => void } {
    const { apis, timeoutMs = 15_000 } = this.#options;
    let server = this.#clients.length;
    const client = newRecordingClient({
      ...{ name, recording: this.recording, resource: configMaps, ca: apis.ca, token: apis.token, timeoutMs },
      url: () => apis.servers[server % apis.servers.length]?.url ?? "",
    });
    this.#clients.push(client);
    return { client, move: () => void server++ };
  }

  async #loop(name: string, act: (client: RecordingClient) => Promise<Outcome>): Promise<void> {
    const { client, move } = this.#newClient(name);
    while (!this.#stopping.signal.aborted) {
      const { code } = await act(client);
      // Switches away from a failing server, and occasionally to use servers that are available again.
      if (code === undefined || code >= 500 || random(10) === 0) move();
      await delay(this.#options.paceMs ?? 10);
    }
  }

  #newInformer({ prefix, selection }: Scope, from?: number): ReturnType<typeof startInformer> {
    const { client, move } = this.#newClient(`watcher-${this.#watchers.length}`);
    return startInformer({ client, prefix, selection, from, timeoutSeconds: () => 3 + random(4), onFailure: move });
  }
}

const isDone = ({ code }: Outcome): boolean => code !== undefined && code < 300;

function figuresOf({ writes, reads, watches }: Recording): Omit<Figures, "relists"> {
  const events = watches.flatMap((watch) => watch.events);
  const bookmarks = events.filter(({ type }) => type === "BOOKMARK").length;
  return {
    acknowledged: writes.filter(isDone).length,
    refused: writes.filter(({ code }) => code !== undefined && code >= 400 && code < 500).length,
    unanswered: writes.filter(({ code }) => code === undefined || code >= 500).length,
    reads: reads.filter(({ code }) => code === 200 || code === 404).length,
    events: events.length - bookmarks,
    bookmarks,
    watches: watches.length,
  };
}
