import { type Document, isScalar, Lexer, parseAllDocuments, type ScalarTag, type Tags, visit } from "yaml";
import { badRequest, requestEntityTooLarge } from "../errors/status-error.ts";
import { goQuote } from "../meta/go-quote.ts";
import { encodeJsonText } from "./json.ts";
import { maxDepth, parseJsonText, setOwn } from "./json-parse.ts";
import { asGoReads, goFloat, goSyntaxError, goValueError, lineOf, notReadable, octalTag, withGoFloats } from "./yaml-go.ts";
import { writeYaml } from "./yaml-write.ts";

/** Aliases in one document; more is taken for a bomb. */
const maxAliases = 100;
/** Tokens of a text: some eight thousand lines. The parser takes two microseconds for each, and holds up everybody else. */
const maxTokens = 50_000;

/** How every refusal begins. */
const failed = "error converting YAML to JSON: ";

/** What was wrong, without where it was noticed. */
export function yamlFault(refusal: Error): string {
  return refusal.message.startsWith(failed) ? refusal.message.slice(failed.length) : refusal.message;
}

/**
 * The first document of a YAML text, whatever comes after it, as JSON values: YAML 1.1 as Go's yaml.v2 reads it (`yes` is true, `017` is 15, `<<`
 * merges), dates stay text, integers beyond 2^53 are bigint. JSON is YAML too and is read by the JSON parser.
 * @param repeated takes what is to be said of keys that a mapping has twice: `line 3: key "a" already set in map`
 * @returns null for an empty text
 * @param mostTokens `parseYamlAside` is for longer texts
 * @throws StatusError 400; 413 for more tokens
 */
export function parseYaml(text: string, repeated?: string[], mostTokens = maxTokens): unknown {
  return readDocuments(text, { mostTokens, mostDocuments: 1, ...(repeated && { repeated }) })[0] ?? null;
}

/** Every document of a stream, of any size; empty ones are left out. @throws StatusError 400 */
export function yamlDocuments(text: string): unknown[] {
  return readDocuments(text, {}).filter((document) => document !== null && document !== undefined);
}

/** A value as YAML, as Go writes it. Built-in kinds are written by their schema. */
export function toYaml(value: unknown): string {
  return typeof value === "object" && value !== null ? yamlOfJson(encodeJsonText(value)) : writeYaml(value);
}

/** The same for a JSON text, which stays as it is when it nests deeper than the writer's stack: JSON is YAML too. */
export function yamlOfJson(json: string): string {
  try {
    return writeYaml(parseJsonText(json));
  } catch (err) {
    if (err instanceof RangeError) return `${json}\n`;
    throw err;
  }
}

interface Reading {
  readonly mostTokens?: number;
  /** What is after them is not looked at. */
  readonly mostDocuments?: number;
  readonly repeated?: string[];
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
      // Flow YAML, unless it is nested beyond what JSON allows.
      if ((err as Error).message.endsWith("exceeded max depth")) throw badRequest(`${failed}yaml: exceeded max depth`);
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
    const what = err instanceof RangeError ? "exceeded max depth" : (err as Error).message;
    throw badRequest(`${failed}${goValueError(what)}`);
  }
}

const notRead = new Set(["timestamp", "binary", "omap", "pairs", "set"].map((name) => `tag:yaml.org,2002:${name}`));

/** Types that JSON has not; sexagesimal numbers, which Go does not read either. */
function withoutDates(tags: Tags): Tags {
  const known = tags.filter((tag) => {
    if (typeof tag === "string") return !["timestamp", "binary", "omap", "pairs", "set", "intTime", "floatTime"].includes(tag);
    return !notRead.has(tag.tag) && (tag as ScalarTag).format !== "TIME";
  });
  return [octalTag, ...known.map(withGoFloats)];
}

/** The YAML parser is recursive: a text that opens brackets without end must not reach it. */
function refuseDeepFlow(text: string): void {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x5b || code === 0x7b) depth++;
    else if (code === 0x5d || code === 0x7d) depth = Math.max(0, depth - 1);
    else if (code !== 0x20 && code !== 0x0a && depth < 100) depth = 0; // only unbroken runs of brackets count
    if (depth > maxDepth) throw badRequest(`${failed}yaml: exceeded max depth`);
  }
}

/** The lexer alone is fast, and gives up early. Long texts count for more than one. */
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
  const object = value as Record<string, unknown>;
  for (const key of Object.keys(object)) setOwn(object, key, jsonValue(object[key]));
  return object;
}

/** In the words of Go's yaml.v2, which names the line of the key that comes again. */
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
