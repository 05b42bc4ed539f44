/**
 * Rewrites the links of an HTML page and leaves all other bytes unchanged. A single pass modelled on the HTML tokenizer:
 * comments, scripts and styles contain no tags.
 * Source: k8s.io/apimachinery pkg/util/proxy/transport.go (which attributes are links)
 */
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import attributes from "./link-attributes.json" with { type: "json" };

const linkAttributes: Readonly<Record<string, readonly string[]>> = attributes;

const rawText: ReadonlySet<string> = new Set([
  "iframe",
  "noembed",
  "noframes",
  "noscript",
  "plaintext",
  "script",
  "style",
  "textarea",
  "title",
  "xmp",
]);

/** Tags between two yields. */
const tagsPerStep = 1_000;

/** @param page decoded as latin1, one character per byte. */
export function* rewriteLinks(page: string, rewrite: (link: string) => string): Steps<string> {
  const lower = page.toLowerCase();
  const pieces: string[] = [];
  let copied = 0;
  let tags = 0;
  for (let at = page.indexOf("<"); at >= 0; at = page.indexOf("<", at)) {
    if (page.startsWith("<!--", at)) {
      at = endOf(page, "-->", at + 4);
      continue;
    }
    if (!isLetter(lower.charCodeAt(at + 1))) {
      at++;
      continue;
    }
    const tag = readTag(page, lower, at + 1);
    if (tag === undefined) break; // page ends inside a tag
    const links = Object.hasOwn(linkAttributes, tag.name) ? linkAttributes[tag.name]! : [];
    for (const { name, from, to } of tag.attributes) {
      if (!links.includes(name)) continue;
      pieces.push(page.slice(copied, from), rewrite(page.slice(from, to)));
      copied = to;
    }
    at = tag.end;
    if (++tags % tagsPerStep === 0) yield;
    if (rawText.has(tag.name)) {
      const close = lower.indexOf(`</${tag.name}`, at);
      if (close < 0) break;
      at = close;
    }
  }
  pieces.push(page.slice(copied));
  return pieces.join("");
}

interface Attribute {
  readonly name: string;
  /** Range of the value, without quotes. */
  readonly from: number;
  readonly to: number;
}

interface Tag {
  readonly name: string;
  readonly attributes: readonly Attribute[];
  /** Index after `>`. */
  readonly end: number;
}

/** @returns undefined when the page ends inside the tag. */
function readTag(page: string, lower: string, from: number): Tag | undefined {
  let at = skip(page, from, (char) => !isSpace(char) && char !== "/" && char !== ">");
  const name = lower.slice(from, at);
  const attributes: Attribute[] = [];
  for (;;) {
    at = skip(page, at, (char) => isSpace(char) || char === "/");
    if (at >= page.length) return undefined;
    if (page[at] === ">") return { name, attributes, end: at + 1 };
    const start = at;
    // A leading `=` is part of the attribute name (HTML tokenizer).
    at = skip(page, at + 1, (char) => !isSpace(char) && char !== "/" && char !== "=" && char !== ">");
    const attribute = lower.slice(start, at);
    const equals = skip(page, at, isSpace);
    if (page[equals] !== "=") continue;
    at = skip(page, equals + 1, isSpace);
    const quote = page[at];
    if (quote === '"' || quote === "'") {
      const close = page.indexOf(quote, at + 1);
      if (close < 0) return undefined;
      attributes.push({ name: attribute, from: at + 1, to: close });
      at = close + 1;
    } else {
      const end = skip(page, at, (char) => !isSpace(char) && char !== ">");
      attributes.push({ name: attribute, from: at, to: end });
      at = end;
    }
  }
}

function skip(page: string, from: number, over: (char: string) => boolean): number {
  let at = from;
  while (at < page.length && over(page[at]!)) at++;
  return at;
}

function endOf(page: string, mark: string, from: number): number {
  const found = page.indexOf(mark, from);
  return found < 0 ? page.length : found + mark.length;
}

function isSpace(char: string): boolean {
  return char === " " || char === "\n" || char === "\r" || char === "\t" || char === "\f";
}

function isLetter(code: number): boolean {
  return code >= 0x61 && code <= 0x7a;
}
