import { closedLoop } from "./load.ts";
import { benchConfigMap, benchPod } from "./objects.ts";
import type { Stage } from "./stage.ts";

/**
 * Objects for rows that write. Bodies are prepared in advance and responses are not parsed, because the client shares the
 * processors with the servers.
 */
export interface Written {
  readonly path: string;
  /** PUT body: the object as returned by the server, without resourceVersion, so that updates never conflict. */
  readonly update: Template;
}

/** JSON with one string that changes. */
interface Template {
  readonly before: string;
  readonly after: string;
}

interface Creation {
  readonly path: string;
  readonly body: Buffer;
}

export type WrittenKind = "pods" | "configmaps";

interface Stock {
  /** Prepared, not yet created. */
  readonly creations: Creation[];
  /** Paths of created objects that may be deleted by another row. */
  readonly leftovers: string[];
  readonly standing: Written[];
}

const stocks = new WeakMap<Stage, Record<WrittenKind, Stock>>();
let sequence = 0;

const json = { "content-type": "application/json" };
const strategic = { "content-type": "application/strategic-merge-patch+json" };
const changing = "example.com/turn";
const patchTemplate = templateOf({ metadata: { annotations: { [changing]: "@" } } });

function stockOf(stage: Stage, kind: WrittenKind): Stock {
  const known = stocks.get(stage) ?? { pods: emptyStock(), configmaps: emptyStock() };
  stocks.set(stage, known);
  return known[kind];
}

function emptyStock(): Stock {
  return { creations: [], leftovers: [], standing: [] };
}

/** @param object its changing annotation has the value `@` */
function templateOf(object: object): Template {
  const changed = `"${changing}":"`;
  const text = JSON.stringify(object);
  const at = text.indexOf(`${changed}@"`) + changed.length;
  return { before: text.slice(0, at), after: text.slice(at + 1) };
}

function collectionOf(stage: Stage, kind: WrittenKind): string {
  return `${stage.writtenPath}/${kind}`;
}

function newCreation(stage: Stage, kind: WrittenKind): Creation {
  const index = sequence++;
  const name = `written-${index}`;
  const object = kind === "pods" ? benchPod(name, index) : benchConfigMap(name, index);
  return { path: `${collectionOf(stage, kind)}/${name}`, body: Buffer.from(JSON.stringify(object)) };
}

/** Prepares bodies until there are `count` unused ones. */
export function spareCreations(stage: Stage, kind: WrittenKind, count: number): void {
  const { creations } = stockOf(stage, kind);
  while (creations.length < count) creations.push(newCreation(stage, kind));
}

/** Creates a prepared object and keeps its path for `spareObjects`. */
export async function create(stage: Stage, kind: WrittenKind): Promise<{ totalMs: number }> {
  const { creations, leftovers } = stockOf(stage, kind);
  const { path, body } = creations.pop() ?? newCreation(stage, kind);
  const answer = await stage.connection.request(collectionOf(stage, kind), { method: "POST", body, headers: json });
  leftovers.push(path);
  return answer;
}

/** `count` permanent objects, the same for each call. */
export async function standingObjects(stage: Stage, kind: WrittenKind, count: number): Promise<readonly Written[]> {
  const { standing } = stockOf(stage, kind);
  const add = async () => {
    const { path, body } = newCreation(stage, kind);
    const options = { method: "POST", body, headers: json, keepBody: true };
    const answer = await stage.connection.request(collectionOf(stage, kind), options);
    const object = JSON.parse(answer.body.toString());
    const { resourceVersion: _, ...metadata } = object.metadata;
    const annotations = { ...metadata.annotations, [changing]: "@" };
    standing.push({ path, update: templateOf({ ...object, metadata: { ...metadata, annotations } }) });
    return answer;
  };
  await closedLoop(add, { concurrency: 16, seconds: 60, maxOperations: count - standing.length });
  return standing;
}

/** At least `count` objects to delete; reuses those created by other rows. */
export async function spareObjects(stage: Stage, kind: WrittenKind, count: number): Promise<string[]> {
  const { leftovers } = stockOf(stage, kind);
  const missing = count - leftovers.length;
  if (missing > 0) await closedLoop(() => create(stage, kind), { concurrency: 16, seconds: 60, maxOperations: missing });
  return leftovers;
}

/** @param turn number that makes each written object different from the previous one */
export function update(stage: Stage, { path, update: { before, after } }: Written, turn: number): Promise<{ totalMs: number }> {
  return stage.connection.request(path, { method: "PUT", body: `${before}${turn}${after}`, headers: json });
}

/** @param turn number that makes each written object different from the previous one */
export function patch(stage: Stage, { path }: Written, turn: number): Promise<{ totalMs: number }> {
  const { before, after } = patchTemplate;
  return stage.connection.request(path, { method: "PATCH", body: `${before}${turn}${after}`, headers: strategic });
}

export function remove(stage: Stage, path: string): Promise<{ totalMs: number }> {
  return stage.connection.request(path, { method: "DELETE" });
}
