import { type Document, isScalar, Lexer, parseAllDocuments, type ScalarTag, type Tags, visit } from "yaml";
import { atOnce, type Steps } from "../../process/event-loop/steps.ts";
import { messageOf } from "../errors/message.ts";
import { badRequest, requestEntityTooLarge } from "../errors/status-error.ts";
import { goQuote } from "../meta/go-quote.ts";
import { encodeJsonText } from "./json.ts";
import { JsonTooDeepError, maxDepth, parseJsonInSteps, parseJsonText, setOwn } from "./json-parse.ts";
import { asGoReads, goFloat, goSyntaxError, goValueError, lineOf, notReadable, octalTag, withGoFloats } from "./yaml-go.ts";
import { writeYaml, writeYamlInSteps } from "./yaml-write.ts";

/** Maximum alias expansion of a document (billion laughs attack). */
const maxAliases = 100;
/** Maximum number of tokens, about 8,000 lines. The parser takes 2 µs per token and blocks the event loop. */
const maxTokens = 50_000;

/** Prefix of all errors. */
const failed = "error converting YAML to JSON: ";

/** Error text without the prefix `error converting YAML to JSON: `. */
export function yamlFault(refusal: Error): string {
  return refusal.message.startsWith(failed) ? refusal.message.slice(failed.length) : refusal.message;
}

/**
 * Parses the first document of a YAML text to JSON values; further documents are ignored. YAML 1.1 as in Go's yaml.v2:
 * `yes` is true, `017` is 15, `<<` merges. Dates stay strings, integers beyond 2^53 are bigint. JSON input uses the JSON
 * parser.
 * @param repeated collects messages about duplicate keys: `line 3: key "a" already set in map`
 * @param mostTokens limit for the number of tokens; use `parseYamlAside` for longer texts
 * @returns null for an empty text
 * @throws StatusError 400; 413 for more than `mostTokens` tokens
 */
export function parseYaml(text: string, repeated?: string[], mostTokens = maxTokens): unknown {
  return readDocuments(text, { mostTokens, mostDocuments: 1, ...(repeated && { repeated }) })[0] ?? null;
}

/** All non-empty documents of a stream, without limit on tokens. @throws StatusError 400 */
export function yamlDocuments(text: string): unknown[] {
  return readDocuments(text, {}).filter((document) => document !== null && document !== undefined);
}

/** Encodes a value as YAML like Go; objects of built-in kinds by their descriptor. */
export function toYaml(value: unknown): string {
  return typeof value === "object" && value !== null ? yamlOfJson(encodeJsonText(value)) : writeYaml(value);
}

/** Converts JSON text to YAML. Returns the JSON (which is valid YAML) when it is nested too deeply for the recursive writer. */
export function yamlOfJson(json: string): string {
  return atOnce(yamlOfJsonInSteps(json));
}

/** Characters of JSON that are parsed in one step. */
const parsedAtOnce = 64 * 1024;

/** As `yamlOfJson`, in steps for many values. */
export function* yamlOfJsonInSteps(json: string): Steps<string> {
  try {
    const value = json.length > parsedAtOnce ? yield* parseJsonInSteps(json) : parseJsonText(json);
    yield;
    return yield* writeYamlInSteps(value);
  } catch (err) {
    if (err instanceof RangeError) return `${json}\n`;
    throw err;
  }
}

interface Reading {
  readonly mostTokens?: number;
  /** Later documents are ignored. */
  readonly mostDocuments?: number;
  readonly repeated?: string[];
}

/** Whether a text is probably JSON, of characters that YAML allows. */
export function looksLikeJson(text: string): boolean {
  return /^\s*[{[]/.test(text) && !notReadable.test(text);
}

function readDocuments(text: string, { mostTokens, mostDocuments, repeated }: Reading): unknown[] {
  if (notReadable.test(text)) throw badRequest(`${failed}yaml: control characters are not allowed`);
  if (/^\s*[{[]/.test(text)) {
    try {
      let isRepeated = false;
      const onDuplicate = () => {
        isRepeated = true;
      };
      const value = parseJsonText(text, repeated === undefined ? {} : { onDuplicate });
      if (!isRepeated) return [value];
    } catch (err) {
      // Not JSON: parsed as YAML flow style below, except for excessive nesting.
      if (err instanceof JsonTooDeepError) throw badRequest(`${failed}yaml: exceeded max depth`);
    }
  }
  refuseDeepFlow(text);
  if (mostTokens !== undefined) refuseManyTokens(text, mostTokens);
  try {
    const documents = parseAllDocuments(text, {
      version: "1.1",
      customTags: withoutDates,
      intAsBigInt: true,
      uniqueKeys: false,
      merge: true,
      logLevel: "silent",
      prettyErrors: false,
    });
    if (!Array.isArray(documents)) return [];
    return documents.slice(0, mostDocuments).map((document) => {
      const [error, ...more] = [...document.errors, ...document.warnings.filter(({ code }) => code === "BAD_DIRECTIVE")];
      if (error?.message.includes("Maximum call stack")) throw new RangeError();
      if (error !== undefined) throw new Error(goSyntaxError([error, ...more], text));
      asGoReads(document, text);
      if (repeated !== undefined) repeated.push(...repeatedKeys(document, text));
      return jsonValue(document.toJS({ maxAliasCount: maxAliases }));
    });
  } catch (err) {
    const what = err instanceof RangeError ? "exceeded max depth" : messageOf(err);
    throw badRequest(`${failed}${goValueError(what)}`);
  }
}

const notRead = new Set(["timestamp", "binary", "omap", "pairs", "set"].map((name) => `tag:yaml.org,2002:${name}`));

/** Removes types without JSON equivalent, and sexagesimal numbers, which yaml.v2 does not support. */
function withoutDates(tags: Tags): Tags {
  const known = tags.filter((tag) => {
    if (typeof tag === "string") return !["timestamp", "binary", "omap", "pairs", "set", "intTime", "floatTime"].includes(tag);
    return !notRead.has(tag.tag) && (tag as ScalarTag).format !== "TIME"; // cast: tags of collections have no format
  });
  return [octalTag, ...known.map(withGoFloats)];
}

/** The YAML parser is recursive; long runs of opening brackets would overflow the stack. */
function refuseDeepFlow(text: string): void {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x5b || code === 0x7b) depth++;
    else if (code === 0x5d || code === 0x7d) depth = Math.max(0, depth - 1);
    else if (code !== 0x20 && code !== 0x0a && depth < 100) depth = 0; // only consecutive brackets count
    if (depth > maxDepth) throw badRequest(`${failed}yaml: exceeded max depth`);
  }
}

/** Counts tokens with the lexer, which is fast, and stops at the limit. Long tokens count more than once. */
function refuseManyTokens(text: string, most: number): void {
  if (text.length <= most) return;
  let tokens = 0;
  for (const token of new Lexer().lex(text)) {
    tokens += 1 + (token.length >> 5);
    if (tokens > most) throw requestEntityTooLarge(`the YAML has more than ${most} tokens`);
  }
}

function jsonValue(value: unknown): unknown {
  if (typeof value === "bigint")
    return BigInt.asIntN(54, value) === value ? Number(value) : value === BigInt.asIntN(64, value) ? value : Number(value);
  if (typeof value === "number" && !Number.isFinite(value)) throw new Error(`json: unsupported value: ${goFloat(value)}`);
  if (typeof value !== "object" || value === null) return value ?? null;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = jsonValue(value[i]);
    return value;
  }
  const object = value as Record<string, unknown>; // cast: what is neither scalar nor list is an object
  for (const key of Object.keys(object)) setOwn(object, key, jsonValue(object[key]));
  return object;
}

/** Messages of Go's yaml.v2 for duplicate keys, with the line of the second occurrence. */
function repeatedKeys(document: Document.Parsed, text: string): string[] {
  const found: string[] = [];
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key) || key.value === "<<") continue;
        if (seen.has(key.value))
          found.push(`line ${lineOf(text, key.range?.[0] ?? 0)}: key ${goQuote(String(key.value))} already set in map`);
        seen.add(key.value);
      }
    },
  });
  return found;
}
