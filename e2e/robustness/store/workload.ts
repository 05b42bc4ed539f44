import { setTimeout as delay } from "node:timers/promises";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { check } from "../../framework/history/check.ts";
import type { EtcdHistory } from "../../framework/history/etcd-history.ts";
import { newRecording, newRecordingClient, type PatchType, type RecordingClient } from "../../framework/history/recorder.ts";
import { byLabel, byName, everything, type Read, type Recording, type Resource } from "../../framework/history/records.ts";
import { newTimeline } from "../../framework/history/timeline.ts";
import { waitFor } from "../../framework/wait-for.ts";
import { startInformer } from "./informer.ts";

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

const patchTypes: readonly PatchType[] = ["json", "merge", "strategic-merge", "apply"];
const groups = ["a", "b", "c"];
const catchUpMs = 60_000;

/**
 * Starts writers, readers and watchers over the servers, each with a connection of its own, which moves to the next server after
 * a failure, and now and then without one.
 */
export function startWorkload(options: WorkloadOptions): Workload {
  const { apis, history, namespaces } = options;
  const { names = 12, paceMs = 10, timeoutMs = 15_000 } = options;
  const recording = newRecording();
  const stopping = new AbortController();
  const clients: RecordingClient[] = [];
  const watchers: { informer: ReturnType<typeof startInformer>; prefix: string; selection: typeof everything }[] = [];
  let tags = 0;

  const random = (below: number): number => Math.floor(Math.random() * below);
  const oneOf = <T>(all: readonly T[]): T => all[random(all.length)] as T;
  const aKey = (): string => `${oneOf(namespaces)}/item-${random(names)}`;

  function newClient(name: string): { client: RecordingClient; move: () => void } {
    let server = clients.length;
    const client = newRecordingClient({
      ...{ name, recording, resource: configMaps, ca: apis.ca, token: apis.token, timeoutMs },
      url: () => (apis.servers[server % apis.servers.length] as (typeof apis.servers)[number]).url,
    });
    clients.push(client);
    return { client, move: () => void server++ };
  }

  async function loop(name: string, act: (client: RecordingClient) => Promise<{ code: number | undefined }>): Promise<void> {
    const { client, move } = newClient(name);
    while (!stopping.signal.aborted) {
      const { code } = await act(client);
      // Switches away from a failing server, and occasionally to use servers that are available again.
      if (code === undefined || code >= 500 || random(10) === 0) move();
      await delay(paceMs);
    }
  }

  function anObject(key: string, resourceVersion?: string): KubeObject {
    const [namespace, name] = key.split("/") as [string, string];
    const metadata = {
      namespace,
      name,
      labels: { group: oneOf(groups) },
      ...(resourceVersion !== undefined && { resourceVersion }),
    };
    return {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata,
      data: { tag: `${namespaces[0]}-${tags++}`, more: "x".repeat(random(200)) },
    } as KubeObject;
  }

  /** Performs a random write; some are always refused. */
  async function write(client: RecordingClient): Promise<{ code: number | undefined }> {
    const key = aKey();
    const kind = random(10);
    if (kind < 2) return client.create(anObject(key));
    if (kind < 3) return client.delete(key);
    if (kind < 4) return client.update(anObject(key));
    const { code, items } = await client.get(key, random(2) === 0 ? 0 : undefined);
    if (code !== 200) return code === 404 ? client.create(anObject(key)) : { code };
    const version = items[0]?.metadata.resourceVersion as string;
    const conditional = random(2) === 0;
    if (kind < 7) return client.update(anObject(key, version));
    return patch(client, key, oneOf(patchTypes), conditional ? version : undefined);
  }

  function patch(
    client: RecordingClient,
    key: string,
    type: PatchType,
    version: string | undefined,
  ): Promise<{ code: number | undefined }> {
    const object = anObject(key, version);
    if (type === "apply") return client.patch(key, type, object, "fieldManager=robustness&force=true");
    if (type !== "json")
      return client.patch(key, type, {
        metadata: { labels: object.metadata.labels, resourceVersion: version },
        data: (object as { data?: unknown }).data,
      });
    const tag = (object as unknown as { data: { tag: string } }).data.tag;
    return client.patch(key, type, [
      ...(version === undefined ? [] : [{ op: "test", path: "/metadata/resourceVersion", value: version }]),
      { op: "replace", path: "/data/tag", value: tag },
    ]);
  }

  /** Performs a random read. */
  async function read(client: RecordingClient): Promise<{ code: number | undefined }> {
    const seen = history.revision;
    const prefix = oneOf(["", `${namespaces[0]}/`, `${namespaces[1]}/`]);
    const selection = oneOf([everything, byLabel("group", "a")]);
    switch (random(7)) {
      case 0:
      case 1:
        return client.get(aKey());
      case 2:
        return client.get(aKey(), seen);
      case 3:
        return client.list(prefix, { selection });
      case 4:
        return client.list(prefix, { selection, revision: seen });
      case 5:
        return client.list(prefix, { selection, revision: Math.max(seen - random(50), 1), exact: true });
      default:
        return pages(client, prefix);
    }
  }

  async function pages(client: RecordingClient, prefix: string): Promise<{ code: number | undefined }> {
    let page: Read = await client.list(prefix, { limit: 4 });
    while (page.continueToken !== undefined) page = await client.list(prefix, { limit: 4, previous: page });
    return page;
  }

  function addWatcher(revisionsBack?: number): void {
    const { client, move } = newClient(`watcher-${watchers.length}`);
    const prefix = oneOf(["", `${namespaces[0]}/`, `${namespaces[1]}/`]);
    const selection = oneOf([everything, everything, byLabel("group", "a"), byLabel("group", "b"), byName("item-1")]);
    const from = revisionsBack === undefined ? undefined : Math.max(history.revision - revisionsBack, 1);
    // A watch without an initial list does not know the objects that existed before.
    const informer = startInformer({ client, prefix, selection, from, timeoutSeconds: () => 3 + random(4), onFailure: move });
    if (from === undefined) watchers.push({ informer, prefix, selection });
    else followers.push(informer);
  }
  const followers: ReturnType<typeof startInformer>[] = [];

  const loops = [
    ...Array.from({ length: options.writers }, (_, i) => loop(`writer-${i}`, write)),
    ...Array.from({ length: options.readers }, (_, i) => loop(`reader-${i}`, read)),
  ];
  for (let i = 0; i < options.watchers; i++) addWatcher();

  const isDone = ({ code }: { code: number | undefined }): boolean => code !== undefined && code < 300;

  async function stop(): Promise<void> {
    stopping.abort();
    await Promise.all([
      ...loops,
      ...watchers.map(({ informer }) => informer.stop()),
      ...followers.map((informer) => informer.stop()),
    ]);
    for (const client of clients) client.close();
  }

  return {
    stop,
    recording,
    get acknowledged() {
      return recording.writes.filter(isDone).length;
    },
    addWatcher,
    async finish() {
      stopping.abort();
      await Promise.all(loops);
      await history.caughtUp();
      const timeline = newTimeline(history.versions(configMaps));
      const broken: string[] = [];
      for (const { informer, prefix, selection } of watchers) {
        const want = timeline
          .state(prefix, history.revision)
          .filter(({ object }) => object !== undefined && selection.matches(object))
          .map(({ key, revision }) => `${key}@${revision}`);
        const held = (): string =>
          [...informer.state]
            .map(([key, revision]) => `${key}@${revision}`)
            .sort()
            .join();
        const same = await waitFor("a watcher to catch up", async () => held() === want.sort().join(), {
          timeoutMs: catchUpMs,
        }).catch(() => false);
        if (!same)
          broken.push(`a watcher of ${prefix || "everything"} ${selection.query} ended with ${held()} instead of ${want.join()}`);
      }
      await stop();
      const events = recording.watches.flatMap((watch) => watch.events);
      const bookmarks = events.filter(({ type }) => type === "BOOKMARK").length;
      return {
        broken: [...broken, ...check(recording, timeline.versions)],
        figures: {
          acknowledged: recording.writes.filter(isDone).length,
          refused: recording.writes.filter(({ code }) => code !== undefined && code >= 400 && code < 500).length,
          unanswered: recording.writes.filter(({ code }) => code === undefined || code >= 500).length,
          reads: recording.reads.filter(({ code }) => code === 200 || code === 404).length,
          events: events.length - bookmarks,
          bookmarks,
          watches: recording.watches.length,
          relists: watchers.reduce((sum, { informer }) => sum + informer.relists - 1, 0),
        },
      };
    },
  };
}
