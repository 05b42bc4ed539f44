import { atOnce, type Steps } from "../../process/event-loop/steps.ts";
import { messageOf } from "../errors/message.ts";
import { badRequest, type StatusError } from "../errors/status-error.ts";
import { goQuote } from "../meta/go-quote.ts";
import { formatGroupVersion, type GroupVersionKind, parseGroupVersion } from "../meta/group-version.ts";
import { jsonWord } from "../meta/json-value.ts";
import type { KubeObject } from "../meta/types.ts";
import type { TypeDescriptor } from "../schema/descriptor.ts";
import { scheme } from "../schema/scheme.ts";
import { type Duplicates, decodeValue, strictComplaints, withoutLiterals } from "./json-decode.ts";
import { encodeAny, encodeValue } from "./json-encode.ts";
import {
  hasLiterals,
  hasUnusualNumbers,
  maxTextDepth,
  type ParseOptions,
  parseJsonInSteps,
  parseJsonText,
  refuseDeep,
  setOwn,
} from "./json-parse.ts";

/** Field validation: drop unknown and duplicate fields silently, report them as warnings, or reject the body. */
export type Strictness = "ignore" | "warn" | "strict";

interface Decoded {
  readonly object: KubeObject;
  /** Messages like `unknown field "spec.foo"` and `duplicate field "spec.foo"`; empty unless `strict` is `warn`. */
  readonly warnings: string[];
}

/**
 * Decodes a request body or a stored object of a built-in kind to its canonical form (`json-decode.ts`). `apiVersion` and
 * `kind` may be missing in the input and are set in the result.
 *
 * The body may have another version of the expected kind; it is decoded as that version.
 * @param expected the expected kind, or its descriptor
 * @throws StatusError 400 with upstream's text for invalid JSON, unknown and other kinds, and wrong types
 * Source: apimachinery pkg/runtime/serializer/json/json.go; apiserver pkg/endpoints/handlers/rest.go (transformDecodeError)
 */
export function decodeJson(
  bytes: Buffer | string,
  expected: GroupVersionKind | TypeDescriptor,
  opts: { strict?: Strictness } = {},
): Decoded {
  return atOnce(decodingJson(bytes, expected, opts.strict, false));
}

/** As `decodeJson`, for bodies of many values. */
export function decodeJsonInSteps(
  bytes: Buffer | string,
  expected: GroupVersionKind | TypeDescriptor,
  opts: { strict?: Strictness } = {},
): Steps<Decoded> {
  return decodingJson(bytes, expected, opts.strict, true);
}

function* decodingJson(
  bytes: Buffer | string,
  expected: GroupVersionKind | TypeDescriptor,
  strict: Strictness = "ignore",
  inSteps: boolean,
): Steps<Decoded> {
  const wanted = gvkOf(expected);
  const text = typeof bytes === "string" ? bytes : bytes.toString("utf8");
  const duplicates = new Map<object, Set<string>>();
  const plainNumbers = !hasUnusualNumbers(text);
  const literals = !plainNumbers && hasLiterals(text);
  const onDuplicate = strict === "ignore" ? undefined : remember(duplicates);
  const options = { literals, plainNumbers, anyDepth: true, maxDepth: maxTextDepth, ...(onDuplicate && { onDuplicate }) };
  let value: unknown;
  try {
    value = inSteps ? yield* parseJsonInSteps(text, options) : parseJsonText(text, options);
  } catch (err) {
    throw unrecognized(wanted.kind, `couldn't get version/kind; json parse error: ${messageOf(err)}`, bytes);
  }
  yield;
  let decoded: Decoded;
  try {
    decoded = yield* decodingParsed(value, expected, strict, duplicates, bytes);
  } catch (err) {
    // Upstream reports excessive nesting before any other error.
    throw depthError(text, wanted.kind, bytes) ?? err;
  }
  if (literals) withoutLiterals(decoded.object);
  return decoded;
}

/** Error for a text that is nested deeper than upstream allows; undefined for others. */
function depthError(text: string, wantedKind: string, bytes: Buffer | string): StatusError | undefined {
  try {
    refuseDeep(text, maxTextDepth);
    return undefined;
  } catch (err) {
    return unrecognized(wantedKind, `couldn't get version/kind; json parse error: ${messageOf(err)}`, bytes);
  }
}

function remember(duplicates: Map<object, Set<string>>): NonNullable<ParseOptions["onDuplicate"]> {
  return (container, key) => {
    const keys = duplicates.get(container);
    if (keys === undefined) duplicates.set(container, new Set([key]));
    else keys.add(key);
  };
}

/**
 * As `decodeJson`, for a parsed value (YAML, a patched object). Takes ownership of the value and may mutate it.
 * @param source the body, quoted in error texts
 * @param repeatedInYaml messages of `parseYaml` about duplicate keys; undefined when the body was not YAML
 */
export function decodeParsed(
  value: unknown,
  expected: GroupVersionKind | TypeDescriptor,
  strict: Strictness = "ignore",
  source: Buffer | string = "",
  repeatedInYaml?: readonly string[],
): Decoded {
  return atOnce(decodingParsed(value, expected, strict, new Map(), source, repeatedInYaml));
}

function* decodingParsed(
  value: unknown,
  expected: GroupVersionKind | TypeDescriptor,
  strict: Strictness,
  duplicates: Duplicates,
  source: Buffer | string,
  repeatedInYaml?: readonly string[],
): Steps<Decoded> {
  const wanted = gvkOf(expected);
  const gvk = kindOf(value, wanted, source);
  const type = "fields" in expected && gvk.kind === wanted.kind && gvk.version === wanted.version ? expected : scheme.kind(gvk);
  if (type === undefined) {
    const where = `in scheme "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30"`;
    throw cannotHandle(
      gvk,
      wanted.kind,
      `no kind ${goQuote(gvk.kind)} is registered for version ${goQuote(formatGroupVersion(gvk))} ${where}`,
    );
  }
  if (gvk.kind !== wanted.kind) {
    const from = `(${type.goPackage}.${type.goName})`;
    const to = `(${wanted.group === "" ? "core" : wanted.group.split(".")[0]}.${wanted.kind})`;
    throw cannotHandle(gvk, wanted.kind, `converting ${from} to ${to}: unknown conversion`);
  }
  let complaints: string[] = [];
  let object: KubeObject;
  try {
    if (strict !== "ignore") {
      complaints = strictComplaints(value, type, duplicates, repeatedInYaml !== undefined);
      yield;
    }
    object = decodeValue(value, type) as unknown as KubeObject; // cast: decoded by the descriptor of a kind, which has metadata
  } catch (err) {
    // strictComplaints recurses into JSON schemas before the decoder can check their depth.
    const why = err instanceof RangeError ? "exceeded max depth" : messageOf(err);
    throw cannotHandle(gvk, wanted.kind, why);
  }
  // Evaluated after decoding: upstream reports a wrong type without other errors.
  if (repeatedInYaml !== undefined && repeatedInYaml.length > 0) {
    const all = `yaml: unmarshal errors:\n  ${repeatedInYaml.join("\n  ")}`;
    complaints.unshift(...(strict === "strict" ? [all] : repeatedInYaml));
  }
  if (strict === "strict" && complaints.length > 0) {
    throw cannotHandle(gvk, wanted.kind, `strict decoding error: ${complaints.join(", ")}`);
  }
  object.apiVersion = formatGroupVersion(gvk);
  object.kind = gvk.kind;
  return { object, warnings: complaints };
}

/**
 * Parses JSON without a schema. Nesting is limited, `__proto__` is an ordinary key, integers beyond 2^53 are bigint.
 * @throws StatusError 400
 */
export function parseJson(bytes: Buffer | string, options?: ParseOptions): unknown {
  const text = typeof bytes === "string" ? bytes : bytes.toString("utf8");
  try {
    return parseJsonText(text, options);
  } catch (err) {
    throw badRequest(messageOf(err));
  }
}

/** Size from which JSON may have so many values that parsing them takes tens of milliseconds. */
export const largeJsonBytes = 256 * 1024;

/** As `parseJson`, in steps for large JSON. */
export function* parseLargeJson(bytes: Buffer, options?: ParseOptions): Steps<unknown> {
  if (bytes.length <= largeJsonBytes) return parseJson(bytes, options);
  try {
    return yield* parseJsonInSteps(bytes.toString("utf8"), options);
  } catch (err) {
    throw badRequest(messageOf(err));
  }
}

/**
 * Encodes an object as upstream does, without trailing newline. Kinds that are not built in get sorted keys.
 * @param type descriptor or kind; default: the object's own apiVersion and kind
 */
export function encodeJson(object: object, type?: TypeDescriptor | GroupVersionKind): Buffer {
  return Buffer.from(encodeJsonText(object, type));
}

/** As `encodeJson`, as a string. */
export function encodeJsonText(object: object, type?: TypeDescriptor | GroupVersionKind): string {
  const descriptor = type === undefined ? descriptorOf(object) : "fields" in type ? type : scheme.kind(type);
  return descriptor === undefined ? encodeAny(object) : encodeValue(object, descriptor);
}

/** Encodes any JSON value with sorted keys. */
export function encodeUntyped(value: unknown): Buffer {
  return Buffer.from(encodeAny(value));
}

/**
 * Converts a parsed value to the canonical form of a type. Takes ownership of the value and may mutate it.
 * @throws StatusError 400
 */
export function coerce(value: unknown, type: TypeDescriptor): KubeObject {
  try {
    return decodeValue(value, type) as unknown as KubeObject; // cast: decoded by the descriptor of a kind, which has metadata
  } catch (err) {
    throw badRequest(messageOf(err));
  }
}

/**
 * As `coerce`, for a canonical object of which only some fields have changed.
 * @param names the changed fields; they may be absent, or unknown to the type
 * @throws StatusError 400
 */
export function coerceFields(object: Record<string, unknown>, type: TypeDescriptor, names: readonly string[]): KubeObject {
  const part: Record<string, unknown> = {};
  for (const name of names) if (Object.hasOwn(object, name)) setOwn(part, name, object[name]);
  const coerced = coerce(part, type) as unknown as Record<string, unknown>; // cast: a part of an object, read by field name
  for (const name of names) {
    if (Object.hasOwn(coerced, name)) setOwn(object, name, coerced[name]);
    else delete object[name];
  }
  return object as unknown as KubeObject; // cast: decoded by the descriptor of a kind, which has metadata
}

/**
 * Converts a parsed response (object or list) to canonical form, so that it conforms to the TypeScript types: on the wire,
 * required lists can be `null` and empty structs `{}`. Takes ownership of the value. Other values, and kinds that are not
 * built in, are returned unchanged.
 * @throws StatusError 400
 */
export function canonical(value: unknown): unknown {
  const type = typeof value === "object" && value !== null ? descriptorOf(value) : undefined;
  return type === undefined ? value : coerce(value, type);
}

/** Descriptor for the object's apiVersion and kind; undefined when it is not a built-in kind. */
function descriptorOf(object: object): TypeDescriptor | undefined {
  const { apiVersion, kind }: { apiVersion?: unknown; kind?: unknown } = object;
  if (typeof apiVersion !== "string" || typeof kind !== "string") return undefined;
  const gv = parseGroupVersion(apiVersion);
  return gv === undefined ? undefined : scheme.kind({ ...gv, kind });
}

/** Formats a compact JSON text with two spaces of indentation, as Go's MarshalIndent does. */
export function indentJson(compact: string): string {
  let out = "";
  let indent = "\n";
  for (let i = 0; i < compact.length; i++) {
    const char = compact[i]!;
    switch (char) {
      case '"': {
        let end = compact.indexOf('"', i + 1);
        while (isEscaped(compact, end)) end = compact.indexOf('"', end + 1);
        out += compact.slice(i, end + 1);
        i = end;
        break;
      }
      case "{":
      case "[":
        if (compact[i + 1] === "}" || compact[i + 1] === "]") {
          out += char + compact[++i];
        } else {
          indent += "  ";
          out += char + indent;
        }
        break;
      case "}":
      case "]":
        indent = indent.slice(0, -2);
        out += indent + char;
        break;
      case ",":
        out += char + indent;
        break;
      case ":":
        out += ": ";
        break;
      default:
        out += char;
    }
  }
  return out;
}

function isEscaped(text: string, quote: number): boolean {
  let backslashes = 0;
  while (text[quote - 1 - backslashes] === "\\") backslashes++;
  return backslashes % 2 === 1;
}

function gvkOf(expected: GroupVersionKind | TypeDescriptor): GroupVersionKind {
  return "fields" in expected ? { group: expected.group, version: expected.version, kind: expected.goName } : expected;
}

/** Group, version and kind of the value, with missing parts taken from `wanted`. */
function kindOf(value: unknown, wanted: GroupVersionKind, source: Buffer | string): GroupVersionKind {
  let said: { apiVersion: string; kind: string };
  try {
    said = claimedKind(value);
  } catch (err) {
    throw unrecognized(wanted.kind, messageOf(err), source);
  }
  const kind = said.kind || wanted.kind;
  if (said.apiVersion === "") return { group: wanted.group, version: wanted.version, kind };
  const gv = parseGroupVersion(said.apiVersion);
  if (gv === undefined) throw unrecognized(wanted.kind, `unexpected GroupVersion string: ${said.apiVersion}`, source);
  if (gv.version === "" && gv.group === wanted.group) return { ...wanted, kind };
  return { ...gv, kind };
}

/**
 * apiVersion and kind of a parsed body; `""` for a missing field.
 * @throws Error with upstream's text for a value that is not an object, and for fields that are not strings
 * Source: apimachinery pkg/runtime/serializer/json/meta.go
 */
export function claimedKind(value: unknown): { apiVersion: string; kind: string } {
  const failed = (what: string): Error =>
    new Error(`couldn't get version/kind; json parse error: json: cannot unmarshal ${what}`);
  if (value === null || value === undefined) return { apiVersion: "", kind: "" };
  if (typeof value !== "object" || Array.isArray(value)) {
    const struct = `struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`;
    throw failed(`${jsonWord(value)} into Go value of type ${struct}`);
  }
  const said: { apiVersion?: unknown; kind?: unknown } = value;
  const textOf = (field: keyof typeof said): string => {
    const text = said[field] ?? "";
    if (typeof text === "string") return text;
    throw failed(`${jsonWord(text)} into Go struct field .${field} of type string`);
  };
  return { apiVersion: textOf("apiVersion"), kind: textOf("kind") };
}

/** BadRequest for a body whose kind is known but that cannot be decoded. */
export function cannotHandle(gvk: GroupVersionKind, wantedKind: string, why: string): StatusError {
  return badRequest(`${gvk.kind} in version ${goQuote(gvk.version)} cannot be handled as a ${wantedKind}: ${why}`);
}

/** BadRequest for a body whose kind cannot be determined. */
export function unrecognized(wantedKind: string, why: string, source: Uint8Array | string): StatusError {
  return badRequest(`the object provided is unrecognized (must be of type ${wantedKind}): ${why} (${summarize(source)})`);
}

/** The first 30 bytes of a body: verbatim if it starts with `{`, else in hex. */
function summarize(source: Uint8Array | string): string {
  const bytes = Buffer.from(typeof source === "string" ? source.slice(0, 31) : source.subarray(0, 31));
  if (bytes.length === 0) return "<empty>";
  const head = bytes.subarray(0, 30).toString(bytes[0] === 0x7b ? "utf8" : "hex");
  return bytes.length > 30 ? `${head} ...` : head;
}
