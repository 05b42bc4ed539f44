import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { KeyToPath } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { Pace, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { runSteps, type Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { type DownwardContext, fieldValue, type ResourceFieldRef, resourceValue } from "../environment/downward-api-env.ts";
import type { NodePod } from "../pod/pod.ts";
import type { PodObjects } from "../pod/pod-objects.ts";
import type { PayloadFile } from "./atomic-writer.ts";

/** Fields that configMap and secret volume sources share: a selection of keys that become files. */
interface KeyedSource {
  name: string;
  items?: readonly KeyToPath[] | undefined;
  optional?: boolean | undefined;
}

/** The files of a configMap volume. @throws Error when the object or a selected key is missing and not optional */
export async function configMapFiles(
  objects: PodObjects,
  namespace: string,
  source: KeyedSource,
  defaultMode: number,
  turns?: Turns,
): Promise<Map<string, PayloadFile>> {
  const object = await orEmpty(source.optional === true, () => objects.configMap(namespace, source.name));
  const { data = {}, binaryData = {} } = object ?? {};
  const bytesOf = (key: string): Buffer | undefined => bytesIn(binaryData, key, "base64") ?? bytesIn(data, key, "utf8");
  const keys = [...Object.keys(data), ...Object.keys(binaryData)];
  return runSteps(turns, project(keys, bytesOf, source, defaultMode, "config"));
}

/** The files of a secret volume. @throws Error when the object or a selected key is missing and not optional */
export async function secretFiles(
  objects: PodObjects,
  namespace: string,
  source: KeyedSource,
  defaultMode: number,
  turns?: Turns,
): Promise<Map<string, PayloadFile>> {
  const object = await orEmpty(source.optional === true, () => objects.secret(namespace, source.name));
  const { data = {} } = object ?? {};
  const bytesOf = (key: string): Buffer | undefined => bytesIn(data, key, "base64");
  return runSteps(turns, project(Object.keys(data), bytesOf, source, defaultMode, "secret"));
}

const bytesIn = (map: Readonly<Record<string, string>>, key: string, encoding: "utf8" | "base64"): Buffer | undefined =>
  Object.hasOwn(map, key) ? Buffer.from(map[key]!, encoding) : undefined;

async function orEmpty<T>(optional: boolean, read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (err) {
    if (optional && isNotFound(err)) return undefined;
    throw err;
  }
}

/** Keys that are decoded in a few milliseconds. */
const keysPerStep = 2048;

/** Decodes only the selected keys: there may be 100,000 others. */
function* project(
  keys: readonly string[],
  bytesOf: (key: string) => Buffer | undefined,
  source: KeyedSource,
  defaultMode: number,
  what: string,
): Steps<Map<string, PayloadFile>> {
  const files = new Map<string, PayloadFile>();
  const pace = new Pace(keysPerStep);
  if (source.items === undefined || source.items.length === 0) {
    for (const key of keys) {
      files.set(key, { data: bytesOf(key) ?? noBytes, mode: defaultMode });
      if (pace.isDue()) yield;
    }
    return files;
  }
  for (const item of source.items) {
    if (pace.isDue()) yield;
    const bytes = bytesOf(item.key);
    if (bytes === undefined) {
      if (source.optional === true) continue;
      throw new Error(`references non-existent ${what} key: ${item.key}`);
    }
    files.set(item.path, { data: bytes, mode: item.mode ?? defaultMode });
  }
  return files;
}

const noBytes = Buffer.alloc(0);

/** An item of a downwardAPI volume. */
interface DownwardItem {
  path: string;
  fieldRef?: { fieldPath: string };
  resourceFieldRef?: ResourceFieldRef;
  mode?: number;
}

/** The files of a downwardAPI volume. */
export function downwardFiles(
  pod: NodePod,
  items: readonly DownwardItem[],
  defaultMode: number,
  context: DownwardContext,
): Map<string, PayloadFile> {
  const files = new Map<string, PayloadFile>();
  /** By text: thousands of items may show all labels of the Pod. */
  const buffers = new Map<string, Buffer>();
  for (const item of items) {
    const text =
      item.fieldRef !== undefined
        ? fieldValue(pod, item.fieldRef.fieldPath, context)
        : resourceValue(pod, item.resourceFieldRef ?? { resource: "" }, "", context);
    const data = buffers.getOrInsertComputed(text, () => Buffer.from(text, "utf8"));
    files.set(item.path.replace(/^\/+/, ""), { data, mode: item.mode ?? defaultMode });
  }
  return files;
}
