import { encodeObject } from "@coxswain/apimachinery/objects/codec/codec";
import { indentJson } from "@coxswain/apimachinery/objects/codec/json";
import { jsonMediaType, protobufMediaType, yamlMediaType } from "@coxswain/apimachinery/objects/codec/negotiate";
import type { GroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { readObjects } from "./input.ts";

/** Media type and file extension per encoding. */
export const formats = {
  json: { mediaType: jsonMediaType, extension: "json" },
  yaml: { mediaType: yamlMediaType, extension: "yaml" },
  protobuf: { mediaType: protobufMediaType, extension: "pb" },
} as const;
export type Format = keyof typeof formats;

export interface Converted {
  readonly bytes: Buffer;
  readonly warnings: readonly string[];
}

/**
 * Converts the objects of one file to another encoding, and optionally to another version.
 * @param version also assumed for objects without apiVersion
 * @throws Error, StatusError 400 when the input is invalid or cannot be represented in the output
 */
export async function convert(input: Buffer, to: Format, version?: GroupVersion): Promise<Converted> {
  const { objects, warnings } = readObjects(input, version);
  return { bytes: encodeAll(version === undefined ? objects : await allInVersion(objects, version), to), warnings };
}

/** Loaded on demand, because the resource catalogue is large. */
async function allInVersion(objects: readonly KubeObject[], version: GroupVersion): Promise<KubeObject[]> {
  const { inVersion } = await import("./versions.ts");
  return objects.map((object) => inVersion(object, version));
}

function encodeAll(objects: readonly KubeObject[], to: Format): Buffer {
  if (to === "protobuf" && objects.length > 1) {
    throw new Error(`${objects.length} documents do not fit into one protobuf file; put them into a List`);
  }
  const texts = objects.map((object) => encodeObject(object, formats[to].mediaType));
  if (to === "json") return Buffer.from(texts.map((text) => `${indentJson(text.toString())}\n`).join(""));
  return to === "yaml" ? Buffer.from(texts.join("---\n")) : texts[0]!;
}
