import { decodeJson, decodeParsed, parseJson } from "@coxswain/apimachinery/objects/codec/json";
import { jsonMediaType, type MediaType, protobufMediaType, yamlMediaType } from "@coxswain/apimachinery/objects/codec/negotiate";
import { decodeProtobuf, protobufPrefix } from "@coxswain/apimachinery/objects/codec/protobuf";
import { yamlDocuments } from "@coxswain/apimachinery/objects/codec/yaml";
import { formatGroupVersion, type GroupVersion, parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";

interface Input {
  readonly objects: readonly KubeObject[];
  /** Dropped parts of the input: unknown and duplicate fields. */
  readonly warnings: readonly string[];
}

/**
 * The objects of a file in canonical form; a YAML stream may contain several documents. The encoding is detected: protobuf by its
 * prefix, JSON by a brace, anything else is YAML. Output of `etcdctl get` is accepted: key, value and a trailing line break.
 * @param version assumed for objects without apiVersion
 * @throws StatusError 400 or Error for invalid input
 */
export function readObjects(bytes: Buffer, version?: GroupVersion): Input {
  const value = withoutKey(bytes);
  if (value.subarray(0, encrypted.length).equals(encrypted)) {
    throw new Error("the value is encrypted: only the API server that has the key can read it");
  }
  switch (mediaTypeOf(value)) {
    case protobufMediaType:
      return { objects: [decodeProtobufValue(value)], warnings: [] };
    case jsonMediaType:
      return readJson(value, version);
    default:
      return readYaml(value, version);
  }
}

function mediaTypeOf(bytes: Buffer): MediaType {
  if (protobufPrefix.equals(bytes.subarray(0, protobufPrefix.length))) return protobufMediaType;
  return /^\s*\{/.test(bytes.toString("latin1", 0, 1024)) ? jsonMediaType : yamlMediaType;
}

const encrypted = Buffer.from("k8s:enc:");

/** Removes etcdctl's key line: keys start with a slash, which no encoding of an object does. */
function withoutKey(bytes: Buffer): Buffer {
  return bytes[0] === 0x2f ? bytes.subarray(bytes.indexOf(0x0a) + 1) : bytes;
}

function decodeProtobufValue(bytes: Buffer): KubeObject {
  try {
    return decodeProtobuf(bytes);
  } catch (err) {
    // etcdctl appends a line break, which can only be distinguished from the value's last byte by trying both.
    if (bytes.at(-1) !== 0x0a) throw err;
    return decodeProtobuf(bytes.subarray(0, -1));
  }
}

function readJson(bytes: Buffer, version: GroupVersion | undefined): Input {
  let value: unknown;
  try {
    value = parseJson(bytes);
  } catch (err) {
    try {
      return readYaml(bytes, version); // `{a: b}` is YAML but not JSON
    } catch {
      throw err;
    }
  }
  const named = kindOf(value, version);
  if (scheme.kind(named) === undefined) return { objects: [unknownKind(value, named)], warnings: [] };
  const { object, warnings } = decodeJson(bytes, named, { strict: "warn" });
  return { objects: [object], warnings };
}

function readYaml(bytes: Buffer, version: GroupVersion | undefined): Input {
  const objects: KubeObject[] = [];
  const warnings: string[] = [];
  for (const value of yamlDocuments(bytes.toString())) {
    const named = kindOf(value, version);
    if (scheme.kind(named) === undefined) {
      objects.push(unknownKind(value, named));
      continue;
    }
    const decoded = decodeParsed(value, named, "warn", bytes);
    objects.push(decoded.object);
    warnings.push(...decoded.warnings);
  }
  if (objects.length === 0) throw new Error("it contains no object");
  return { objects, warnings };
}

interface Named extends GroupVersion {
  readonly kind: string;
}

/** @throws Error for a value without kind or apiVersion. */
function kindOf(value: unknown, version: GroupVersion | undefined): Named {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error(
      `expected an object, found ${value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`}`,
    );
  }
  const { apiVersion, kind } = value as { apiVersion?: unknown; kind?: unknown }; // cast: both fields are checked below
  if (typeof kind !== "string" || kind === "") throw new Error("the object has no kind");
  if (apiVersion === undefined || apiVersion === "") {
    if (version === undefined) throw new Error("the object has no apiVersion: pass --api-version");
    return { ...version, kind };
  }
  const gv = typeof apiVersion === "string" ? parseGroupVersion(apiVersion) : undefined;
  if (gv === undefined) throw new Error(`${JSON.stringify(apiVersion)} is no apiVersion`);
  return { ...gv, kind };
}

/** A custom resource: unchanged. */
function unknownKind(value: unknown, named: Named): KubeObject {
  return { ...(value as KubeObject), apiVersion: formatGroupVersion(named), kind: named.kind }; // cast: kindOf has checked that it is an object with a kind
}
