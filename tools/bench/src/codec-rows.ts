import { decodeJson, encodeJson, parseJson } from "@coxswain/apimachinery/objects/codec/json";
import { decodeProtobuf, encodeProtobuf } from "@coxswain/apimachinery/objects/codec/protobuf";
import type { GroupVersionKind } from "@coxswain/apimachinery/objects/meta/group-version";
import { benchPod, largePod } from "./objects.ts";

/** A codec operation and the equivalent built-in JSON operation on the same value. */
export interface CodecRow {
  readonly name: string;
  run(): unknown;
  /** Baseline: `JSON.parse` of the text or `JSON.stringify` of the value. */
  bare(): unknown;
  /** Maximum ratio to `bare`; undefined: no limit. */
  readonly limit?: number;
}

const pod: GroupVersionKind = { group: "", version: "v1", kind: "Pod" };
const podList: GroupVersionKind = { group: "", version: "v1", kind: "PodList" };

/** @param listed number of Pods in the list */
export function codecRows(listed: number): CodecRow[] {
  const items = Array.from({ length: listed }, (_, i) => benchPod(`web-${i}`, i));
  return [
    ...rowsOf("Pod of 3 kB", pod, benchPod("web-1", 1)),
    ...rowsOf("Pod of 30 kB", pod, largePod("web-1")),
    ...rowsOf(`list of ${listed.toLocaleString("en-US")} pods`, podList, { metadata: { resourceVersion: "1" }, items }),
  ];
}

function rowsOf(name: string, kind: GroupVersionKind, sent: object): CodecRow[] {
  const body = Buffer.from(JSON.stringify(sent));
  const text = body.toString();
  const { object } = decodeJson(body, kind);
  const json = encodeJson(object, kind);
  const protobuf = encodeProtobuf(object, kind);
  const value = parseJson(json);
  const whole = json.toString();
  return [
    { name: `${name}, JSON decode`, run: () => decodeJson(body, kind), bare: () => JSON.parse(text), limit: 2.5 },
    { name: `${name}, JSON encode`, run: () => encodeJson(object, kind), bare: () => JSON.stringify(value) },
    { name: `${name}, protobuf decode`, run: () => decodeProtobuf(protobuf), bare: () => JSON.parse(whole), limit: 2.5 },
    { name: `${name}, protobuf encode`, run: () => encodeProtobuf(object, kind), bare: () => JSON.stringify(value), limit: 2.5 },
  ];
}
