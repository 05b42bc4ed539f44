import {
  type FieldError,
  forbiddenField,
  invalidValue,
  mapKey,
  tooLong,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { ConfigMap } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { chunksOf, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { configMapKeyProblems } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { wholeObject } from "../../rules.ts";

/** Source: pkg/registry/core/configmap/strategy.go, pkg/apis/core/validation ValidateConfigMap */
export const configMapStrategy: Strategy<ConfigMap> = {
  namespaceScoped: true,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  validateInSteps: (next, current) => (current === undefined ? validateConfigMap(next) : validateConfigMapUpdate(next, current)),
};

export const mostDataBytes = 1024 * 1024;

/** Keys checked between two yields: each may have an error. */
export const keysPerStep = 4096;

function* validateConfigMap({ data = {}, binaryData = {} }: ConfigMap): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  let size = 0;
  for (const keys of chunksOf(Object.keys(data), keysPerStep)) {
    yield;
    // Object.values would read all of a large map at once, which takes three times as long as its keys.
    size += bytesOf(keys.map((key) => data[key]!));
    for (const key of keys) {
      for (const message of configMapKeyProblems(key)) errors.push(invalidValue(mapKey("data", key), key, message));
      if (Object.hasOwn(binaryData, key))
        errors.push(invalidValue(mapKey("data", key), key, "duplicate of key present in binaryData"));
    }
  }
  for (const keys of chunksOf(Object.keys(binaryData), keysPerStep)) {
    yield;
    for (const key of keys) {
      for (const message of configMapKeyProblems(key)) errors.push(invalidValue(mapKey("binaryData", key), key, message));
      size += Buffer.byteLength(binaryData[key]!, "base64");
    }
  }
  if (size > mostDataBytes) errors.push(tooLong(wholeObject, "", mostDataBytes));
  return errors;
}

/** Total UTF-8 length. Measuring the joined string is faster than many small strings. */
function bytesOf(texts: readonly string[]): number {
  return Buffer.byteLength(texts.join("\n")) - (texts.length - 1);
}

function* validateConfigMapUpdate(next: ConfigMap, current: ConfigMap): Steps<FieldError[]> {
  const errors: FieldError[] = [];
  if (current.immutable) {
    if (!next.immutable) errors.push(forbiddenField("immutable", "field is immutable when `immutable` is set"));
    if (!semanticEqual(next.data, current.data))
      errors.push(forbiddenField("data", "field is immutable when `immutable` is set"));
    if (!semanticEqual(next.binaryData, current.binaryData))
      errors.push(forbiddenField("binaryData", "field is immutable when `immutable` is set"));
  }
  return [...errors, ...(yield* validateConfigMap(next))];
}
