/**
 * Lists in text forms: compact JSON, indented JSON, or YAML. Items are encoded one by one, so that a long list is never
 * completely in memory and does not block the event loop.
 */
import { indentJson } from "@coxswain/apimachinery/objects/codec/json";
import { yamlOfJson, yamlOfJsonInSteps } from "@coxswain/apimachinery/objects/codec/yaml";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Entry } from "../storage/storage.ts";
import type { ItemBytes } from "./list-body.ts";

export type TextForm = "compact" | "indented" | "yaml";

interface Layout {
  /** Formats a complete list. */
  whole(compact: string): string;
  /** The text of an item `0` in this layout. */
  readonly placeholder: string;
  item(json: Buffer, first: boolean): readonly Uint8Array[];
}

const layouts: Readonly<Record<TextForm, Layout>> = {
  compact: {
    whole: (compact) => `${compact}\n`,
    placeholder: "0",
    item: (json, first) => (first ? [json] : [comma, json]),
  },
  indented: {
    whole: indentJson,
    placeholder: "\n    0",
    // Line breaks in JSON text are never part of a string.
    item: (json, first) => [Buffer.from(`${first ? "" : ","}\n    ${indentJson(json.toString()).replaceAll("\n", "\n    ")}`)],
  },
  yaml: {
    whole: yamlOfJson,
    placeholder: "- 0\n",
    item: (json) => [atOnce(yamlItemInSteps(json))],
  },
};

/** An item of a YAML list, in steps for large ones. */
export function* yamlItemInSteps(json: Buffer): Steps<Buffer> {
  const text = yield* yamlOfJsonInSteps(`[${json}]`);
  return Buffer.from(text.startsWith("- ") ? text : `- ${json}\n`); // too deeply nested values remain JSON
}

const comma = Buffer.from(",");

export interface TextList {
  readonly head: Buffer;
  readonly bytesOf: ItemBytes;
  readonly tail: Buffer;
  /** The complete list without items. */
  readonly empty: Buffer;
}

/**
 * @param compact the list as JSON with an empty `items` as its last field: `{"kind":…,"items":[]}`
 * @param itemOf encodes an item as compact JSON
 */
export function textList(form: TextForm, compact: string, itemOf: (entry: Entry) => Buffer): TextList {
  const { whole, placeholder, item } = layouts[form];
  const text = whole(`${compact.slice(0, -2)}0]}`);
  const at = text.lastIndexOf(placeholder);
  return {
    head: Buffer.from(text.slice(0, at)),
    bytesOf: (entry, first) => item(itemOf(entry), first),
    tail: Buffer.from(text.slice(at + placeholder.length)),
    empty: Buffer.from(whole(compact)),
  };
}
