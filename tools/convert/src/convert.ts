import { decodeObject, encodeObject } from "@coxswain/apimachinery/codec/codec";
import { indentJson } from "@coxswain/apimachinery/codec/json";
import { jsonMediaType, type MediaType, protobufMediaType, yamlMediaType } from "@coxswain/apimachinery/codec/negotiate";
import { protobufPrefix } from "@coxswain/apimachinery/codec/protobuf";
import { parseGroupVersion } from "@coxswain/apimachinery/meta/group-version";

export const formats = { json: jsonMediaType, yaml: yamlMediaType, protobuf: protobufMediaType } as const satisfies Record<
  string,
  MediaType
>;
export type Format = keyof typeof formats;
export const extensions: Readonly<Record<Format, string>> = { json: "json", yaml: "yaml", protobuf: "pb" };

/**
 * One object in another encoding. What the input is, its first bytes tell: the protobuf prefix anywhere within an etcd
 * value's head, a brace for JSON, YAML otherwise.
 * @param apiVersion of objects that do not name theirs
 * @throws StatusError 400 for an input that is none of the three; Error for a kind that the output cannot hold
 */
export function convert(input: Buffer, to: Format, apiVersion?: string): Buffer {
  const bytes = withoutHead(input);
  const gv = apiVersion === undefined ? undefined : parseGroupVersion(apiVersion);
  const kind = gv === undefined ? undefined : /"?\bkind"?:\s*"?(\w+)/.exec(bytes.toString("latin1"))?.[1];
  const expected = gv === undefined || kind === undefined ? undefined : { ...gv, kind };
  const { object } = decodeObject(bytes, mediaTypeOf(bytes), expected);
  const output = encodeObject(object, formats[to]);
  return to === "json" ? Buffer.from(`${indentJson(output.toString())}\n`) : output;
}

export function mediaTypeOf(bytes: Buffer): MediaType {
  if (protobufPrefix.equals(bytes.subarray(0, 4))) return protobufMediaType;
  return /^\s*\{/.test(bytes.toString("latin1", 0, 64)) ? jsonMediaType : yamlMediaType;
}

/** What `etcdctl get` prints is the key, a line end, the value and a line end. */
function withoutHead(input: Buffer): Buffer {
  if (input[0] !== 0x2f) return input;
  const value = input.subarray(input.indexOf(0x0a) + 1);
  return value.at(-1) === 0x0a ? value.subarray(0, -1) : value;
}
