import { isKeyOf } from "@coxswain/apimachinery/process/narrowing/keys";
import type { FromWorker, Source, Usage } from "./protocol.ts";
import { isNode, isPod, kindNames, type NodeRow, type PodRow, type Resource, type Row } from "./row.ts";

interface Amounts {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
}

/** The pods of one node, ordered by name. Replaced by a new object when one of them changes. */
interface NodePods {
  readonly pods: readonly PodRow[];
  /** The sum of the pods' requests. */
  readonly requested: Amounts;
}

const noPods: NodePods = { pods: [], requested: { cpuMilli: 0, memoryBytes: 0 } };

/**
 * The page's state of the cluster: the rows that the worker sent, with indexes by node and owner. `version` increases with each
 * change; listeners are called once for several changes.
 */
export class Cluster {
  readonly #rows = new Map<string, Row>();
  readonly #byResource = new Map<Resource, Map<string, Row>>();
  readonly #versions = new Map<Resource, number>();
  readonly #byOwner = new Map<string, Set<string>>();
  readonly #byNode = new Map<string, Map<string, PodRow>>();
  readonly #nodePods = new Map<string, NodePods>();
  readonly #sources = new Map<Resource, Source>();
  readonly #texts = new Map<string, string>();
  readonly #listeners = new Set<() => void>();
  readonly #schedule: (report: () => void) => void;
  #nodeUsage = new Map<string, Amounts>();
  #podUsage = new Map<string, Amounts>();
  #isScheduled = false;
  #version = 0;

  /** @param schedule calls its argument once, asynchronously; `requestAnimationFrame` on the page */
  constructor(schedule: (report: () => void) => void) {
    this.#schedule = schedule;
  }

  get version(): number {
    return this.#version;
  }

  /** @returns a function that removes the listener */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Applies a message of the worker. Listeners are called later, once for all messages since. */
  apply(message: Exclude<FromWorker, { readonly type: "refused" }>): void {
    if (message.type === "rows") {
      for (const uid of message.gone) this.#remove(uid);
      for (const row of message.set) this.#set(this.#interned(row));
    } else if (message.type === "source") {
      this.#sources.set(message.resource, message.source);
    } else {
      this.#nodeUsage = usageMap(message.nodes);
      this.#podUsage = usageMap(message.pods);
    }
    this.#changed();
  }

  all<R extends Row = Row>(resource: Resource): ReadonlyMap<string, R> {
    return this.#byResource.get(resource) ?? new Map();
  }

  /** Increases when a row of the resource changes. */
  versionOf(resource: Resource): number {
    return this.#versions.get(resource) ?? 0;
  }

  get(uid: string): Row | undefined {
    return this.#rows.get(uid);
  }

  find(resource: string, namespace: string, name: string): Row | undefined {
    if (!isKeyOf(kindNames, resource)) return undefined;
    for (const row of this.all(resource).values()) {
      if (row.name === name && row.namespace === namespace) return row;
    }
    return undefined;
  }

  /** The objects that the object controls. */
  owned(uid: string): Row[] {
    return [...(this.#byOwner.get(uid) ?? [])].flatMap((one) => this.#rows.get(one) ?? []).sort(byName);
  }

  /** The owners of the object, from its controller to the topmost one. */
  owners(row: Row): Row[] {
    const found: Row[] = [];
    for (let next = this.#rows.get(row.owner); next !== undefined && found.length < 10; next = this.#rows.get(next.owner)) {
      found.push(next);
    }
    return found;
  }

  /** @param node `""` for pods without one */
  podsOf(node: string): NodePods {
    const known = this.#nodePods.get(node);
    if (known !== undefined) return known;
    const there = this.#byNode.get(node);
    if (there === undefined) return noPods;
    const pods = [...there.values()].sort(byName);
    const running = pods.filter(({ health }) => health !== "idle");
    const made: NodePods = {
      pods,
      requested: {
        cpuMilli: running.reduce((sum, { cpuMilli }) => sum + cpuMilli, 0),
        memoryBytes: running.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0),
      },
    };
    this.#nodePods.set(node, made);
    return made;
  }

  /** undefined without metrics of the object. */
  usageOf(row: NodeRow | PodRow): Amounts | undefined {
    return isPod(row) ? this.#podUsage.get(`${row.namespace}/${row.name}`) : this.#nodeUsage.get(row.name);
  }

  get hasPodUsage(): boolean {
    return this.#podUsage.size > 0;
  }

  /** State of the resource's list and watch. */
  source(resource: Resource): Source {
    return this.#sources.get(resource) ?? { state: "loading", message: "" };
  }

  get sources(): ReadonlyMap<Resource, Source> {
    return this.#sources;
  }

  #set(row: Row): void {
    const known = this.#rows.get(row.uid);
    if (known !== undefined) this.#unindex(known);
    this.#rows.set(row.uid, row);
    const { resource } = row;
    const all = this.#byResource.get(resource) ?? new Map<string, Row>();
    if (!this.#byResource.has(resource)) this.#byResource.set(resource, all);
    all.set(row.uid, row);
    this.#versions.set(resource, this.versionOf(resource) + 1);
    if (row.owner !== "") {
      const owned = this.#byOwner.get(row.owner) ?? new Set();
      this.#byOwner.set(row.owner, owned.add(row.uid));
    }
    if (!isPod(row)) return;
    const pods = this.#byNode.get(row.node) ?? new Map<string, PodRow>();
    this.#byNode.set(row.node, pods.set(row.uid, row));
    this.#nodePods.delete(row.node);
  }

  #remove(uid: string): void {
    const row = this.#rows.get(uid);
    if (row === undefined) return;
    this.#unindex(row);
    this.#rows.delete(uid);
    this.#byResource.get(row.resource)?.delete(uid);
    this.#versions.set(row.resource, this.versionOf(row.resource) + 1);
  }

  #unindex(row: Row): void {
    const owned = this.#byOwner.get(row.owner);
    if (owned?.delete(row.uid) && owned.size === 0) this.#byOwner.delete(row.owner);
    if (!isPod(row)) return;
    this.#nodePods.delete(row.node);
    const pods = this.#byNode.get(row.node);
    if (pods?.delete(row.uid) && pods.size === 0) this.#byNode.delete(row.node);
  }

  /** Messages from the worker contain new strings; equal ones are replaced by one shared string to save memory. */
  #interned(row: Row): Row {
    const { namespace, owner, status } = row;
    const base = { ...row, namespace: this.#text(namespace), owner: this.#text(owner), status: this.#text(status) };
    if (!isPod(row)) return base;
    const pod: PodRow = { ...row, ...base, resource: "pods", node: this.#text(row.node) };
    return pod;
  }

  #text(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    if (this.#texts.size >= mostTexts) this.#texts.clear();
    this.#texts.set(text, text);
    return text;
  }

  #changed(): void {
    this.#version++;
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#schedule(() => {
      this.#isScheduled = false;
      for (const listener of this.#listeners) listener();
    });
  }
}

const mostTexts = 50_000;

/** Plain comparison: names are ASCII, and a collator is a hundred times slower. */
export const byName = (a: Row, b: Row): number =>
  compare(a.namespace, b.namespace) || compare(a.name, b.name) || compare(a.uid, b.uid);
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const usageMap = (all: readonly Usage[]): Map<string, Amounts> =>
  new Map(all.map(([key, cpuMilli, memoryBytes]) => [key, { cpuMilli, memoryBytes }]));

export const nodesOf = (cluster: Cluster): NodeRow[] => [...cluster.all("nodes").values()].filter(isNode).sort(byName);
