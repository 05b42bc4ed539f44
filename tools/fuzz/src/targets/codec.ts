/** Bodies of requests and responses. */
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { BadEventError, decodeProtobufWatch, decodeWatchStream } from "@coxswain/apimachinery/client/watch-decoder";
import { decodeObject, encodeObject } from "@coxswain/apimachinery/objects/codec/codec";
import { encodeJsonText, parseJson } from "@coxswain/apimachinery/objects/codec/json";
import { encodeAny } from "@coxswain/apimachinery/objects/codec/json-encode";
import { JsonSyntaxError, parseJsonText } from "@coxswain/apimachinery/objects/codec/json-parse";
import {
  jsonMediaType,
  negotiateInput,
  negotiateOutput,
  protobufMediaType,
  yamlMediaType,
} from "@coxswain/apimachinery/objects/codec/negotiate";
import { decodeUnknown, encodeUnknown } from "@coxswain/apimachinery/objects/codec/protobuf";
import { frameWatchEvent, WatchEventDecoder } from "@coxswain/apimachinery/objects/codec/stream";
import { parseYaml, toYaml, yamlDocuments } from "@coxswain/apimachinery/objects/codec/yaml";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { customDefinition, deployment, kinds, objects, pod } from "../objects.ts";
import type { Target } from "../target.ts";

const mediaTypes = [jsonMediaType, yamlMediaType, protobufMediaType];
const podKind = { group: "", version: "v1", kind: "Pod" };
const jsonWords = [
  '{"',
  '":',
  '"',
  "[]",
  "{}",
  "null",
  "true",
  "1e9",
  "\\u0000",
  "\\ud800",
  '"__proto__":',
  "9007199254740993",
  "-0",
  "\u2028",
];
const fieldWords = [
  "metadata",
  "spec",
  "kind",
  "apiVersion",
  "containers",
  "labels",
  "resources",
  "creationTimestamp",
  "100m",
  "2021-12-07T00:00:00Z",
];
const yamlWords = [
  "&a ",
  "*a",
  "<<: ",
  "!!binary ",
  "!!float ",
  "|\n",
  ">-\n",
  "- ",
  "? ",
  ": ",
  "---\n",
  "...\n",
  "%YAML 1.1\n",
  "yes",
  "0o17",
  "017",
  "1_0",
  ".inf",
  "~",
  "0x1F",
  "2001-01-01",
  "1:30",
  "\t",
  "# ",
];

/** A decoded object must survive a round trip through each encoding that its kind supports. */
function staysTheSame(input: Buffer, mediaType: string, expected?: typeof podKind): void {
  const { object } = decodeObject(input, mediaType, expected, { strict: "warn" });
  const { apiVersion = "", kind = "" } = object;
  const type = scheme.kind({ ...podKind, ...gvkOf(apiVersion), kind });
  if (type === undefined) return;
  const forms = type.jsonOnly ? mediaTypes.slice(0, 2) : mediaTypes;
  const json = encodeJsonText(object);
  for (const form of forms) {
    // Unpaired surrogates cannot be encoded in UTF-8, and NaN cannot in JSON.
    if (!json.isWellFormed() || /\\ud[89a-f]/i.test(json)) return;
    const again = decodeObject(encodeObject(object, form), form).object;
    // YAML may reorder keys that the schema does not define.
    assert.deepEqual(parseJson(encodeJsonText(again)), parseJson(json), form);
  }
}

function gvkOf(apiVersion: string): { group: string; version: string } {
  const slash = apiVersion.indexOf("/");
  return slash < 0
    ? { group: "", version: apiVersion }
    : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

async function drain(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _event of events);
}

/** Splits the input at the offset given by its first byte. */
const cut = (input: Buffer): Buffer[] =>
  [input.subarray(1, 1 + (input[0] ?? 0)), input.subarray(1 + (input[0] ?? 0))].filter(({ length }) => length > 0);

const events = (mediaType: string): Buffer =>
  Buffer.concat([
    Buffer.of(100),
    frameWatchEvent("ADDED", encodeObject(pod, mediaType), mediaType),
    frameWatchEvent("ERROR", encodeObject(status, mediaType), mediaType),
  ]);
const status = { apiVersion: "v1", kind: "Status", metadata: {}, status: "Failure", reason: "Expired", code: 410 };

export const targets: readonly Target[] = [
  {
    name: "json-text",
    seeds: ['{"a":[1,2.5,-0,1e3,true,null,"\\u00e9\\ud83d\\ude00"],"a":9007199254740993}', "[[[[]]]]", '"\\n"'],
    dictionary: jsonWords,
    declares: [JsonSyntaxError],
    run(input) {
      const text = input.toString();
      const plain = attempt(() => JSON.parse(text) as unknown); // cast: JSON.parse returns any
      const ours = attempt(() => parseJsonText(text, { onDuplicate: () => {}, plainNumbers: false }));
      assert.equal("value" in ours, "value" in plain, "reads what JSON.parse reads, and nothing else");
      if ("value" in ours) assert.equal(JSON.stringify(ours.value, withoutBigInts), JSON.stringify(plain.value, withoutBigInts));
      parseJsonText(text, { literals: true });
    },
  },
  {
    name: "json",
    seeds: objects.map((object) => encodeObject(object, jsonMediaType)),
    dictionary: [...jsonWords, ...fieldWords],
    maxBytes: 2048,
    run: (input) => staysTheSame(input, jsonMediaType, podKind),
  },
  {
    name: "yaml",
    seeds: objects.map((object) => encodeObject(object, yamlMediaType)),
    dictionary: [...yamlWords, ...fieldWords],
    run: (input) => staysTheSame(input, yamlMediaType, podKind),
  },
  {
    name: "yaml-text",
    seeds: [
      "a: &x [1, yes, 017, .inf]\nb: *x\n<<: {c: 1}\n",
      "- |\n  text\n- >-\n  more\n  of it\n- !!binary aGk=\n",
      "---\n? a\n: b\n...\n---\n1\n",
      "'it''s': \"\\x41\\u00e9\"\n",
    ],
    dictionary: yamlWords,
    maxBytes: 400,
    run(input) {
      const value = parseYaml(input.toString(), []);
      yamlDocuments(input.toString());
      const text = toYaml(value);
      if (isPlainText(value)) assert.deepEqual(parseYaml(text), value, text);
    },
  },
  {
    name: "protobuf",
    seeds: objects.map((object) => encodeObject(object, protobufMediaType)),
    dictionary: ["k8s\0", ...fieldWords, Buffer.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1)],
    run: (input) => staysTheSame(input, protobufMediaType),
  },
  {
    name: "protobuf-kinds",
    seeds: kinds.map((_gvk, at) => Buffer.from([at, ...encodeObject(deployment, protobufMediaType).subarray(30)])),
    dictionary: [
      Buffer.of(0x0a, 0),
      Buffer.of(0x12, 4),
      Buffer.of(0x0b),
      Buffer.of(0x0c),
      Buffer.of(0x80, 0x80, 0x80, 0x80, 0x80, 0x80),
    ],
    run(input) {
      const gvk = kinds[(input[0] ?? 0) % kinds.length]!;
      const apiVersion = gvk.group === "" ? gvk.version : `${gvk.group}/${gvk.version}`;
      staysTheSame(encodeUnknown({ apiVersion, kind: gvk.kind, raw: input.subarray(1) }), protobufMediaType);
    },
  },
  {
    name: "protobuf-envelope",
    seeds: [encodeUnknown({ apiVersion: "v1", kind: "Pod", raw: Buffer.from("x"), contentEncoding: "gzip", contentType: "a/b" })],
    declares: [Error],
    run: (input) => void decodeUnknown(input),
  },
  {
    name: "watch-events",
    seeds: mediaTypes.filter((type) => type !== yamlMediaType).map(events),
    dictionary: ['{"type":"ADDED","object":', "}\n", "\n", Buffer.of(0, 0, 0, 4), Buffer.of(0xff, 0xff, 0xff, 0xff)],
    run(input) {
      const faults: unknown[] = [];
      for (const mediaType of [jsonMediaType, protobufMediaType]) {
        const decoder = new WatchEventDecoder(mediaType);
        try {
          for (const chunk of cut(input)) decoder.push(chunk);
        } catch (err) {
          faults.push(err);
        }
      }
      if (faults.length > 0) throw faults.find((fault) => !(fault as { code?: number }).code) ?? faults[0]; // cast: read from any error
    },
  },
  {
    name: "watch-stream",
    seeds: [events(jsonMediaType), events(protobufMediaType)],
    dictionary: ['{"type":"MODIFIED","object":', "}\n", "\n", '{"type":"ERROR","object":{"code":410}}'],
    declares: [BadEventError, Error, StatusError],
    async run(input) {
      const { signal } = new AbortController();
      await drain(decodeProtobufWatch(Readable.from(cut(input)), signal)).catch((err: Error) => {
        if (err instanceof TypeError || err instanceof RangeError) throw err;
      });
      await drain(decodeWatchStream(Readable.from(cut(input)), signal));
    },
  },
  {
    name: "custom-objects",
    seeds: [
      encodeObject(customDefinition, jsonMediaType),
      '{"apiVersion":"example.com/v1","kind":"Any","metadata":{"name":"a"},"spec":{"__proto__":1}}',
    ],
    dictionary: jsonWords,
    declares: [StatusError], // 500 for an object with a kind but no apiVersion
    run(input) {
      const value = parseJson(input);
      if (isPlainText(value)) assert.deepEqual(parseJson(encodeAny(value)), value);
      decodeObject(input, jsonMediaType, { group: "example.com", version: "v1", kind: "Any" });
    },
  },
  {
    name: "accept-header",
    seeds: [
      "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
      "text/html, */*;q=0.1",
      "application/vnd.kubernetes.protobuf;stream=watch;q=0.5",
    ],
    dictionary: [";", ",", ";q=", "*", "/", '"', ";as=PartialObjectMetadataList", ";pretty=1", ";v=v1beta1"],
    run(input) {
      const text = input.toString("latin1");
      for (const protobuf of [true, false, "metadata"] as const) negotiateOutput(text, { protobuf, transforms: true });
      negotiateOutput(text, { stream: true });
    },
  },
  {
    name: "content-type",
    seeds: ["application/json; charset=utf-8", 'application/yaml;a="b\\"c"'],
    dictionary: [";", "=", '"', "\\", "/", "charset="],
    run: (input) => void negotiateInput(input.toString("latin1")),
  },
];

function attempt(read: () => unknown): { value: unknown } | { value?: never; err: unknown } {
  try {
    return { value: read() };
  } catch (err) {
    if (!(err instanceof SyntaxError) && !(err instanceof JsonSyntaxError)) throw err;
    return { err };
  }
}

const withoutBigInts = (_key: string, value: unknown): unknown => (typeof value === "bigint" ? Number(value) : value);

/** True when the value has no number that encodings may write differently, and no unpaired surrogate. */
function isPlainText(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (Array.isArray(value)) return value.every(isPlainText);
  if (typeof value === "object" && value !== null)
    return Object.entries(value).every(([key, one]) => key.isWellFormed() && isPlainText(one));
  return typeof value !== "number" || (Number.isSafeInteger(value) && !Object.is(value, -0));
}
