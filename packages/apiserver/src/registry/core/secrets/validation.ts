import { JsonSyntaxError, parseJsonText } from "@coxswain/apimachinery/objects/codec/json-parse";
import {
  addErrors,
  type FieldError,
  forbiddenField,
  invalidValue,
  mapKey,
  required,
  tooLong,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { isJsonObject, jsonWord } from "@coxswain/apimachinery/objects/meta/json-value";
import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { chunksOf, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { configMapKeyProblems, immutableField } from "../../field-checks.ts";
import { saying } from "../../rules.ts";
import { keysPerStep, mostDataBytes } from "../configmaps/strategy.ts";

type Data = Readonly<Record<string, string>>;

/** Source: pkg/apis/core/validation ValidateSecret */
export function* validateSecret(secret: Secret): Steps<FieldError[]> {
  const data: Data = secret.data ?? {};
  const errors: FieldError[] = [];
  let size = 0;
  for (const keys of chunksOf(Object.keys(data), keysPerStep)) {
    yield;
    for (const key of keys) {
      addErrors(errors, saying(configMapKeyProblems(key), key, mapKey("data", key)));
      size += Buffer.byteLength(data[key]!, "base64");
    }
  }
  if (size > mostDataBytes) errors.push(tooLong("data", "", mostDataBytes));
  const type = secret.type ?? "";
  if (Object.hasOwn(byType, type)) errors.push(...(byType[type]?.(data, secret) ?? []));
  return errors;
}

const accountName = "kubernetes.io/service-account.name";
/** Upstream does not substitute the key in two error paths; clients see this text. */
const oddPath = "data[%s]";

/** Required contents by secret type. */
const byType: Readonly<Record<string, (data: Data, secret: Secret) => FieldError[]>> = {
  "kubernetes.io/service-account-token": (_data, secret) =>
    secret.metadata.annotations?.[accountName] ? [] : [required(mapKey("metadata.annotations", accountName))],
  "kubernetes.io/dockercfg": (data) => jsonUnder(data, ".dockercfg"),
  "kubernetes.io/dockerconfigjson": (data) => jsonUnder(data, ".dockerconfigjson"),
  "kubernetes.io/basic-auth": (data) =>
    Object.hasOwn(data, "username") || Object.hasOwn(data, "password")
      ? []
      : [required(mapKey(oddPath, "username")), required(mapKey(oddPath, "password"))],
  "kubernetes.io/ssh-auth": (data) =>
    Object.hasOwn(data, "ssh-privatekey") && data["ssh-privatekey"] ? [] : [required(mapKey(oddPath, "ssh-privatekey"))],
  "kubernetes.io/tls": (data) =>
    ["tls.crt", "tls.key"].filter((key) => !Object.hasOwn(data, key)).map((key) => required(mapKey("data", key))),
};

function jsonUnder(data: Data, key: string): FieldError[] {
  const at = mapKey("data", key);
  if (!Object.hasOwn(data, key)) return [required(at)];
  const fault = objectFault(Buffer.from(data[key]!, "base64").toString("utf8"));
  // The error must not contain the secret data.
  return fault === undefined ? [] : [invalidValue(at, "<secret contents redacted>", fault)];
}

/** @returns Go's error text when the text is not a JSON object */
function objectFault(text: string): string | undefined {
  let value: unknown;
  try {
    value = parseJsonText(text);
  } catch (err) {
    if (err instanceof JsonSyntaxError) return err.message;
    throw err;
  }
  if (value === null || isJsonObject(value)) return undefined;
  return `json: cannot unmarshal ${jsonWord(value)} into Go value of type map[string]interface {}`;
}

const immutableText = "field is immutable when `immutable` is set";

/**
 * The type is immutable. `immutable` cannot be unset, and makes the data immutable.
 * Source: pkg/apis/core/validation ValidateSecretUpdate
 */
export function* validateSecretUpdate(next: Secret, current: Secret): Steps<FieldError[]> {
  const errors = immutableField(next.type, current.type, "type");
  if (current.immutable) {
    if (!next.immutable) errors.push(forbiddenField("immutable", immutableText));
    if (!semanticEqual(next.data, current.data)) errors.push(forbiddenField("data", immutableText));
  }
  return [...errors, ...(yield* validateSecret(next))];
}
