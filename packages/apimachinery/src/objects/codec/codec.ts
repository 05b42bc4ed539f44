import type { Cancellation, Turns } from "../../process/event-loop/turns.ts";
import { messageOf } from "../errors/message.ts";
import { badRequest, internalError, StatusError } from "../errors/status-error.ts";
import { type GroupVersionKind, parseGroupVersion } from "../meta/group-version.ts";
import type { KubeObject, Unstructured } from "../meta/types.ts";
import { scheme } from "../schema/scheme.ts";
import {
  cannotHandle,
  claimedKind,
  coerce,
  decodeJson,
  decodeJsonInSteps,
  decodeParsed,
  encodeJson,
  largeJsonBytes,
  parseJson,
  parseLargeJson,
  type Strictness,
  unrecognized,
} from "./json.ts";
import { jsonMediaType, protobufMediaType, yamlMediaType } from "./negotiate.ts";
import { decodeProtobuf, decodeProtobufAs, decodeProtobufInSteps, encodeProtobuf } from "./protobuf.ts";
import { parseYaml, toYaml, yamlFault } from "./yaml.ts";
import { parseYamlAside } from "./yaml-aside.ts";

interface DecodeOptions {
  readonly strict?: Strictness;
  /** Ignore the body's apiVersion and kind: DeleteOptions may come with the group version of their resource. */
  readonly asExpected?: boolean;
  /** Limit for the elements of all lists and maps of a protobuf body in total. */
  readonly maxElements?: number;
}

interface DecodeBodyOptions extends DecodeOptions {
  readonly turns: Turns;
  readonly request?: Cancellation;
}

/**
 * Decodes a body of any supported media type. Objects of built-in kinds are returned in canonical form, others unchanged.
 * @param expected default for apiVersion and kind of a built-in kind; without it, and for other kinds, the body must have them
 * @throws StatusError 400; 500 for a custom resource with a kind and without apiVersion
 */
export function decodeObject(
  bytes: Buffer,
  mediaType: string,
  expected?: GroupVersionKind,
  options: DecodeOptions = {},
): { object: KubeObject; warnings: string[] } {
  if (mediaType === protobufMediaType) return { object: decodeProtobufObject(bytes, expected, options), warnings: [] };
  if (mediaType === yamlMediaType) {
    const repeated = listOfRepeated(options);
    return decodeYaml(parseYaml(bytes.toString(), repeated), repeated, bytes, expected, options);
  }
  if (isBuiltIn(expected) && !options.asExpected)
    return decodeJson(bytes, expected, options.strict === undefined ? {} : { strict: options.strict });
  const value = parsed(bytes, options.asExpected ? undefined : expected);
  return { object: typed(value, bytes, expected, options), warnings: [] };
}

/**
 * As `decodeObject`, for request bodies, without blocking the event loop: large YAML is parsed in a worker thread, large JSON
 * in steps.
 * @throws the errors of `parseYamlAside`, too; invalid YAML is reported as an unrecognized object
 */
export async function decodeBodyObject(
  bytes: Buffer,
  mediaType: string,
  expected: GroupVersionKind,
  options: DecodeBodyOptions,
): Promise<{ object: KubeObject; warnings: string[] }> {
  if (mediaType === jsonMediaType && bytes.length > largeJsonBytes && !options.asExpected)
    return decodeLargeJson(bytes, expected, options);
  if (mediaType === protobufMediaType && !options.asExpected) {
    const object = await options.turns.run(decodeProtobufInSteps(bytes, expected, options), bytes.length, options.request);
    return { object, warnings: [] };
  }
  if (mediaType !== yamlMediaType) return decodeObject(bytes, mediaType, expected, options);
  const repeated = listOfRepeated(options);
  let value: unknown;
  try {
    value = await parseYamlAside(bytes.toString(), repeated, options.turns);
  } catch (err) {
    throw err instanceof StatusError && err.code === 400 ? unrecognized(expected.kind, yamlFault(err), bytes) : err;
  }
  return decodeYaml(value, repeated, bytes, expected, options);
}

async function decodeLargeJson(
  bytes: Buffer,
  expected: GroupVersionKind,
  options: DecodeBodyOptions,
): Promise<{ object: KubeObject; warnings: string[] }> {
  if (isBuiltIn(expected)) {
    const steps = decodeJsonInSteps(bytes, expected, options.strict === undefined ? {} : { strict: options.strict });
    return options.turns.run(steps, 0, options.request);
  }
  let value: unknown;
  try {
    value = await options.turns.run(parseLargeJson(bytes), 0, options.request);
  } catch (err) {
    options.request?.throwIfAborted();
    throw unparsable(err, bytes, expected);
  }
  return { object: typed(value, bytes, expected, options), warnings: [] };
}

/** Array for messages about duplicate keys; undefined when field validation ignores them. */
function listOfRepeated({ strict = "ignore" }: DecodeOptions): string[] | undefined {
  return strict === "ignore" ? undefined : [];
}

function decodeYaml(
  value: unknown,
  repeated: string[] | undefined,
  bytes: Buffer,
  expected: GroupVersionKind | undefined,
  options: DecodeOptions,
): { object: KubeObject; warnings: string[] } {
  if (isBuiltIn(expected) && !options.asExpected) return decodeParsed(value, expected, options.strict, bytes, repeated);
  return { object: typed(value, bytes, expected, options), warnings: [] };
}

function isBuiltIn(kind: GroupVersionKind | undefined): kind is GroupVersionKind {
  return kind !== undefined && scheme.kind(kind) !== undefined;
}

/**
 * Encodes an object: JSON without trailing newline, YAML, or protobuf with its envelope.
 * @throws Error for an unknown media type, and for kinds without protobuf encoding
 */
export function encodeObject(object: KubeObject, mediaType: string): Buffer {
  switch (mediaType) {
    case jsonMediaType:
      return encodeJson(object);
    case yamlMediaType:
      return Buffer.from(toYaml(object));
    case protobufMediaType:
      return encodeProtobuf(object);
    default:
      throw new Error(`no codec for ${mediaType}`);
  }
}

function parsed(bytes: Buffer, expected: GroupVersionKind | undefined): unknown {
  try {
    return parseJson(bytes);
  } catch (err) {
    throw unparsable(err, bytes, expected);
  }
}

function unparsable(err: unknown, bytes: Buffer, expected: GroupVersionKind | undefined): Error {
  return unreadable(`couldn't get version/kind; json parse error: ${messageOf(err)}`, bytes, expected);
}

function unreadable(why: string, bytes: Buffer, expected: GroupVersionKind | undefined): Error {
  return expected === undefined ? badRequest(why) : unrecognized(expected.kind, why, bytes);
}

function typed(body: unknown, bytes: Buffer, expected: GroupVersionKind | undefined, options: DecodeOptions): KubeObject {
  let said: { apiVersion: string; kind: string };
  try {
    said = claimedKind(body);
  } catch (err) {
    throw unreadable(messageOf(err), bytes, options.asExpected ? undefined : expected);
  }
  // Cast: `claimedKind` has refused scalars and lists; readers of custom resources check the other fields by the schema.
  const value = body as Unstructured;
  if (options.asExpected && expected !== undefined) {
    const type = scheme.kind(expected);
    return type === undefined ? value : coerce(value ?? {}, type);
  }
  if (said.kind === "" || said.apiVersion === "") throw missingPart(said.kind === "" ? "Kind" : "apiVersion", bytes, expected);
  const gv = parseGroupVersion(value.apiVersion!);
  if (gv === undefined) throw badRequest(`unexpected GroupVersion string: ${value.apiVersion}`);
  const type = scheme.kind({ ...gv, kind: value.kind! });
  return type === undefined ? value : coerce(value, type);
}

/** Custom resources have no default type. A missing apiVersion is an internal error, as upstream finds it only later. */
function missingPart(part: "Kind" | "apiVersion", bytes: Buffer, expected: GroupVersionKind | undefined): Error {
  const text = `Object '${part}' is missing in '${bytes.toString("utf8", 0, 1024)}'`;
  if (expected === undefined) return badRequest(text);
  if (part === "Kind") return cannotHandle(expected, expected.kind, text);
  return internalError(new Error("Object 'apiVersion' is missing in 'object has no apiVersion field'"));
}

function decodeProtobufObject(bytes: Buffer, expected: GroupVersionKind | undefined, options: DecodeOptions): KubeObject {
  if (!options.asExpected || expected === undefined) return decodeProtobuf(bytes, expected, options);
  return decodeProtobufAs(expected, bytes, options);
}
