import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { EtcdHistory } from "../../framework/history/etcd-history.ts";
import type { PatchType, RecordingClient } from "../../framework/history/recorder.ts";
import { byLabel, byName, everything, type Read, type Selection } from "../../framework/history/records.ts";

/** The status code of a request; undefined when no response arrived. */
export interface Outcome {
  readonly code: number | undefined;
}

/** What a watcher watches. */
export interface Scope {
  readonly prefix: string;
  readonly selection: Selection;
}

const patchTypes: readonly PatchType[] = ["json", "merge", "strategic-merge", "apply"];
const groups = ["a", "b", "c"];

/** A random integer from 0 to `below` - 1. */
export const random = (below: number): number => Math.floor(Math.random() * below);

/** @param all must not be empty */
function oneOf<T>(all: readonly T[]): T {
  const one = all[random(all.length)];
  if (one === undefined) throw new Error("nothing to choose from");
  return one;
}

/** Chooses requests to the ConfigMaps of two namespaces. Each object that it writes has another `data.tag`. */
export class RandomRequests {
  readonly #history: EtcdHistory;
  readonly #namespaces: readonly [string, string];
  readonly #names: number;
  #tags = 0;

  /** @param names number of names in each namespace */
  constructor(history: EtcdHistory, namespaces: readonly [string, string], names: number) {
    this.#history = history;
    this.#namespaces = namespaces;
    this.#names = names;
  }

  /** Performs a random write; some are always refused. */
  async write(client: RecordingClient): Promise<Outcome> {
    const key = this.#key();
    const kind = random(10);
    if (kind < 2) return client.create(this.#object(key));
    if (kind < 3) return client.delete(key);
    if (kind < 4) return client.update(this.#object(key));
    const { code, items } = await client.get(key, random(2) === 0 ? 0 : undefined);
    if (code !== 200) return code === 404 ? client.create(this.#object(key)) : { code };
    const version = items[0]?.metadata.resourceVersion;
    const conditional = random(2) === 0;
    if (kind < 7) return client.update(this.#object(key, version));
    return this.#patch(client, key, oneOf(patchTypes), conditional ? version : undefined);
  }

  /** Performs a random read. */
  async read(client: RecordingClient): Promise<Outcome> {
    const seen = this.#history.revision;
    const prefix = this.#prefix();
    const selection = oneOf([everything, byLabel("group", "a")]);
    switch (random(7)) {
      case 0:
      case 1:
        return client.get(this.#key());
      case 2:
        return client.get(this.#key(), seen);
      case 3:
        return client.list(prefix, { selection });
      case 4:
        return client.list(prefix, { selection, revision: seen });
      case 5:
        return client.list(prefix, { selection, revision: Math.max(seen - random(50), 1), exact: true });
      default:
        return readPages(client, prefix);
    }
  }

  scope(): Scope {
    const selections = [everything, everything, byLabel("group", "a"), byLabel("group", "b"), byName("item-1")];
    return { prefix: this.#prefix(), selection: oneOf(selections) };
  }

  #key(): string {
    return `${oneOf(this.#namespaces)}/item-${random(this.#names)}`;
  }

  #prefix(): string {
    return oneOf(["", `${this.#namespaces[0]}/`, `${this.#namespaces[1]}/`]);
  }

  #object(key: string, resourceVersion?: string): TaggedObject {
    const [namespace, name] = key.split("/");
    const metadata = {
      namespace,
      name,
      labels: { group: oneOf(groups) },
      ...(resourceVersion !== undefined && { resourceVersion }),
    };
    const data = { tag: `${this.#namespaces[0]}-${this.#tags++}`, more: "x".repeat(random(200)) };
    return { apiVersion: "v1", kind: "ConfigMap", metadata, data };
  }

  #patch(client: RecordingClient, key: string, type: PatchType, version: string | undefined): Promise<Outcome> {
    const object = this.#object(key, version);
    if (type === "apply") return client.patch(key, type, object, "fieldManager=robustness&force=true");
    if (type !== "json") {
      const metadata = { labels: object.metadata.labels, resourceVersion: version };
      return client.patch(key, type, { metadata, data: object.data });
    }
    return client.patch(key, type, [
      ...(version === undefined ? [] : [{ op: "test", path: "/metadata/resourceVersion", value: version }]),
      { op: "replace", path: "/data/tag", value: object.data.tag },
    ]);
  }
}

interface TaggedObject extends KubeObject {
  data: { tag: string; more: string };
}

async function readPages(client: RecordingClient, prefix: string): Promise<Outcome> {
  let page: Read = await client.list(prefix, { limit: 4 });
  while (page.continueToken !== undefined) page = await client.list(prefix, { limit: 4, previous: page });
  return page;
}
