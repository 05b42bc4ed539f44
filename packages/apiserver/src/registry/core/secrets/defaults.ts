import { setOwn } from "@coxswain/apimachinery/objects/codec/json-parse";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { atOnce, chunksOf, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";

/** Merges the write-only `stringData` into `data`. Source: pkg/apis/core/v1/{defaults,conversion}.go */
export function defaultSecret(object: KubeObject): void {
  atOnce(defaultingSecret(object));
}

/** Keys that are merged between two yields. */
const keysPerStep = 2048;

/** As `defaultSecret`, in steps. */
export function* defaultingSecret(object: KubeObject): Steps<void> {
  const secret: Secret = object;
  secret.type ||= "Opaque";
  const { stringData } = secret;
  if (stringData === undefined || stringData === null) return;
  const data: Record<string, string> = secret.data ?? {};
  const keys = Object.keys(stringData);
  for (const some of chunksOf(keys, keysPerStep)) {
    if (keys.length > keysPerStep) yield;
    for (const key of some) setOwn(data, key, Buffer.from(stringData[key]!).toString("base64"));
  }
  if (keys.length > 0 || Object.keys(data).length > 0) secret.data = data;
  delete secret.stringData;
}
