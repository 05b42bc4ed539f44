/**
 * Lists as text for people and for clients that want metadata alone: compact JSON, JSON over lines, or YAML. The items
 * are written one after the other, so that no form of a long list is ever whole in memory or holds up the loop.
 */
import { indentJson } from "@coxswain/apimachinery/codec/json";
import { yamlOfJson } from "@coxswain/apimachinery/codec/yaml";
import type { Entry } from "../storage/storage.ts";
import type { ItemBytes } from "./list-body.ts";

export type TextForm = "compact" | "indented" | "yaml";

interface Layout {
  /** A whole list. */
  whole(compact: string): string;
  /** How an item `0` stands in it. */
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
    // A line break inside of a JSON text is never part of a string.
    item: (json, first) => [Buffer.from(`${first ? "" : ","}\n    ${indentJson(json.toString()).replaceAll("\n", "\n    ")}`)],
  },
  yaml: {
    whole: yamlOfJson,
    placeholder: "- 0\n",
    item(json) {
      const text = yamlOfJson(`[${json}]`);
      return [Buffer.from(text.startsWith("- ") ? text : `- ${json}\n`)]; // what nests too deep comes as JSON
    },
  },
};

const comma = Buffer.from(",");

export interface TextList {
  readonly head: Buffer;
  readonly bytesOf: ItemBytes;
  readonly tail: Buffer;
  /** All of it when there are no items. */
  readonly empty: Buffer;
}

/**
 * @param compact the list as JSON without its items, which are its last field: `{"kind":…,"items":[]}`
 * @param itemOf an item as compact JSON
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
