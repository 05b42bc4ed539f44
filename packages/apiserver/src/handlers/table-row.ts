import { encodeJsonTextInSteps } from "@coxswain/apimachinery/objects/codec/json-encode-steps";
import { humanDuration } from "@coxswain/apimachinery/objects/meta/time";
import type { KubeObject, Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { timelessCells } from "../registry/generic/ages.ts";
import type { TableColumns } from "../registry/generic/strategy.ts";
import type { Entry } from "../storage/storage.ts";
import type { ServedResource } from "./served-resources.ts";
import { partialMetadata, type TableOptions } from "./transform.ts";

/**
 * Encoded Table rows, cached with their entries except for the ages: sending a list of 5,000 pods as Table then copies bytes instead of
 * decoding and encoding 5,000 objects (0.6 s).
 *
 * Format: the number of ages; for each its offset in the text (4 bytes) and its time (8 bytes); the text without the ages.
 */
const countBytes = 2;
const ageBytes = 12;

/** The cache slot of rows of this layout; undefined for rows that contain whole objects, which are not cached. */
export function rowSlot(served: ServedResource, { includeObject, metaVersion }: TableOptions): string | undefined {
  return includeObject === "Object" ? undefined : `row:${includeObject}:${metaVersion}:${idOf(served.definition.table)}`;
}

/**
 * @param slot from `rowSlot`
 * @returns the parts of a row in order, with ages as of `options.now`; undefined for an entry without a cache
 */
export function rowBytes(slot: string, served: ServedResource, entry: Entry, options: TableOptions): Uint8Array[] | undefined {
  if (entry.kept === undefined) return undefined;
  const { now } = options;
  const kept = entry.kept(slot, (object) => atOnce(encodingRow(served.definition.table, object, options)));
  const count = kept.readUInt16LE(0);
  let from = countBytes + count * ageBytes;
  const text = from;
  const pieces: Uint8Array[] = [];
  for (let index = 0; index < count; index++) {
    const at = countBytes + index * ageBytes;
    const to = text + kept.readUInt32LE(at);
    pieces.push(kept.subarray(from, to), Buffer.from(humanDuration(now - kept.readDoubleLE(at + 4))));
    from = to;
  }
  pieces.push(kept.subarray(from));
  return pieces;
}

/** Makes what `rowBytes` returns, in steps for large objects. @param slot from `rowSlot` */
export const keepingRow = (slot: string, { definition }: ServedResource, entry: Entry, options: TableOptions): Steps<void> =>
  entry.keepInSteps(slot, (object) => encodingRow(definition.table, object, options));

function* encodingRow(table: TableColumns, object: KubeObject, { includeObject, metaVersion }: TableOptions): Steps<Buffer> {
  yield;
  const { texts, since } = timelessCells(table, object as Unstructured); // cast: cells read fields by name
  const kind = { group: "meta.k8s.io", version: metaVersion, kind: "PartialObjectMetadata" };
  const metadata = partialMetadata(object, metaVersion);
  const shown = includeObject === "None" ? "null" : yield* encodeJsonTextInSteps(metadata, kind);
  const pieces = [...texts];
  pieces[0] = `{"cells":${pieces[0]}`;
  pieces.push(`${pieces.pop()},"object":${shown}}`);
  const head = Buffer.alloc(countBytes + since.length * ageBytes);
  head.writeUInt16LE(since.length, 0);
  let offset = 0;
  for (const [index, ms] of since.entries()) {
    offset += Buffer.byteLength(pieces[index]!);
    head.writeUInt32LE(offset, countBytes + index * ageBytes);
    head.writeDoubleLE(ms, countBytes + index * ageBytes + 4);
  }
  return Buffer.concat([head, Buffer.from(pieces.join(""))]);
}

/** Column sets are numbered, for the names of memo slots: a changed custom resource may have other columns for the same entries. */
const ids = new WeakMap<TableColumns, number>();
let tables = 0;

const idOf = (table: TableColumns): number => ids.getOrInsertComputed(table, () => tables++);
