/** Common parts of the protobuf messages of OpenAPI v2 and v3. Source: github.com/google/gnostic */
import { rawJson } from "@coxswain/apimachinery/objects/codec/json-encode";
import { toYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import protobuf from "protobufjs/minimal.js";

export type Writer = protobuf.Writer;

/** Writes the `x-…` members by name, each value as YAML. */
export function writeExtensions(writer: Writer, field: number, holder: object): void {
  for (const [name, value] of Object.entries(holder)) {
    if (name.startsWith("x-")) named(writer, field, name, (one) => any(one, value));
  }
}

/** Writes the message Any, with the value as YAML. */
export function any(writer: Writer, value: unknown): void {
  text(writer, 2, yamlOf(value));
}

/** Cache of encoded values: a document repeats a few hundred of them thousands of times. */
const written = new Map<string, string>();
const mostWritten = 1000;

function yamlOf(value: unknown): string {
  const json = rawJson(value);
  let yaml = written.get(json);
  if (yaml === undefined) {
    if (written.size >= mostWritten) written.clear();
    yaml = toYaml(value);
    written.set(json, yaml);
  }
  return yaml;
}

/** Writes a map entry: names and values are repeated messages `{ name = 1; value = 2 }`. */
export function named(writer: Writer, field: number, name: string, value: (writer: Writer) => void): void {
  message(writer, field, (pair) => {
    text(pair, 1, name);
    message(pair, 2, value);
  });
}

/** Writes an embedded message; `write` writes its fields. */
export function message(writer: Writer, field: number, write: (writer: Writer) => void): void {
  writer.uint32((field << 3) | 2).fork();
  write(writer);
  writer.ldelim();
}

/** Writes a message of many fields in pieces; yields after each field. */
export function* messageOf<T>(field: number, parts: readonly T[], write: (writer: Writer, part: T) => void): Steps<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for (const part of parts) {
    const writer = protobuf.Writer.create();
    write(writer, part);
    const piece = writer.finish();
    pieces.push(piece);
    length += piece.length;
    yield;
  }
  const head = protobuf.Writer.create()
    .uint32((field << 3) | 2)
    .uint32(length)
    .finish();
  return [head, ...pieces];
}

/** Writes a string; proto3 omits an empty one. */
export function text(writer: Writer, field: number, value: string | undefined): void {
  if (value !== undefined && value !== "") writer.uint32((field << 3) | 2).string(value);
}

/** Writes a repeated string; empty elements are kept. */
export function texts(writer: Writer, field: number, values: readonly string[]): void {
  for (const value of values) writer.uint32((field << 3) | 2).string(value);
}

/** Writes a bool; proto3 omits false. */
export function flag(writer: Writer, field: number, value: boolean | undefined): void {
  if (value === true) writer.uint32(field << 3).bool(true);
}
