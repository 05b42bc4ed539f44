import { closedLoop } from "./load.ts";
import { benchConfigMap, benchPod } from "./objects.ts";
import type { Stage } from "./stage.ts";

/** An object that rows write to: where it is, and what a PUT of it begins with. */
export interface Written {
  readonly path: string;
  /** As the server answered, without its resourceVersion: whoever writes last wins. */
  readonly object: { readonly metadata: { readonly annotations?: object } };
}

export type WrittenKind = "pods" | "configmaps";

/** Objects that a row made and another one may delete. */
const leftovers = new WeakMap<Stage, Record<WrittenKind, string[]>>();
const standing = new WeakMap<Stage, Record<WrittenKind, Written[]>>();
let sequence = 0;

const json = { "content-type": "application/json" };
const strategic = { "content-type": "application/strategic-merge-patch+json" };

function of<T>(map: WeakMap<Stage, Record<WrittenKind, T[]>>, stage: Stage, kind: WrittenKind): T[] {
  const known = map.get(stage) ?? { pods: [], configmaps: [] };
  map.set(stage, known);
  return known[kind];
}

function newObject(kind: WrittenKind): { name: string; object: object } {
  const index = sequence++;
  const name = `written-${index}`;
  return { name, object: kind === "pods" ? benchPod(name, index) : benchConfigMap(name, index) };
}

export async function create(stage: Stage, kind: WrittenKind): Promise<{ totalMs: number }> {
  const { name, object } = newObject(kind);
  const collection = `${stage.writtenPath}/${kind}`;
  const { totalMs } = await stage.connection.request(collection, { method: "POST", body: JSON.stringify(object), headers: json });
  of(leftovers, stage, kind).push(`${collection}/${name}`);
  return { totalMs };
}

/** `count` objects that stay, the same ones each time. */
export async function standingObjects(stage: Stage, kind: WrittenKind, count: number): Promise<readonly Written[]> {
  const known = of(standing, stage, kind);
  const collection = `${stage.writtenPath}/${kind}`;
  const add = async () => {
    const { name, object } = newObject(kind);
    const options = { method: "POST", body: JSON.stringify(object), headers: json, keepBody: true };
    const { totalMs, body } = await stage.connection.request(collection, options);
    const { resourceVersion: _, ...metadata } = JSON.parse(body.toString()).metadata;
    known.push({ path: `${collection}/${name}`, object: { ...JSON.parse(body.toString()), metadata } });
    return { totalMs };
  };
  await closedLoop(add, { concurrency: 16, seconds: 60, maxOperations: count - known.length });
  return known;
}

/** At least `count` objects to delete; those that were created before come first. */
export async function spareObjects(stage: Stage, kind: WrittenKind, count: number): Promise<string[]> {
  const spare = of(leftovers, stage, kind);
  const missing = count - spare.length;
  if (missing > 0) await closedLoop(() => create(stage, kind), { concurrency: 16, seconds: 60, maxOperations: missing });
  return spare;
}

export function update(stage: Stage, { path, object }: Written, turn: number): Promise<{ totalMs: number }> {
  const annotations = { ...object.metadata.annotations, "example.com/turn": String(turn) };
  const body = JSON.stringify({ ...object, metadata: { ...object.metadata, annotations } });
  return stage.connection.request(path, { method: "PUT", body, headers: json });
}

export function patch(stage: Stage, { path }: Written, turn: number): Promise<{ totalMs: number }> {
  const body = JSON.stringify({ metadata: { annotations: { "example.com/turn": String(turn) } } });
  return stage.connection.request(path, { method: "PATCH", body, headers: strategic });
}

export function remove(stage: Stage, path: string): Promise<{ totalMs: number }> {
  return stage.connection.request(path, { method: "DELETE" });
}
