import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { forbiddenField, invalidValue, required, tooLong } from "@coxswain/apimachinery/errors/field-error";
import { mapKey } from "@coxswain/apimachinery/errors/field-path";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { Secret } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { immutableField, isConfigMapKey } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { mostDataBytes } from "../configmaps/strategy.ts";

/** Source: pkg/registry/core/secret/strategy.go, pkg/apis/core/validation ValidateSecret */
export const secretStrategy: Strategy<Secret> = {
  namespaceScoped: true,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  prepareForUpdate(next, current) {
    // Without a type an update keeps the one that is there.
    if (!next.type && current.type) next.type = current.type;
  },
  validate: (next) => validateSecret(next),
  validateUpdate: (next, current) => validateSecretUpdate(next, current),
};

function validateSecret(secret: Secret): FieldError[] {
  const errors: FieldError[] = [];
  const data = secret.data ?? {};
  let size = 0;
  for (const [key, value] of Object.entries(data)) {
    for (const message of isConfigMapKey(key)) errors.push(invalidValue(mapKey("data", key), key, message));
    size += Buffer.byteLength(value, "base64");
  }
  if (size > mostDataBytes) errors.push(tooLong("data", "", mostDataBytes));
  const has = (key: string): boolean => Object.hasOwn(data, key) && (data[key] as string).length > 0;
  switch (secret.type as string) {
    case "kubernetes.io/service-account-token":
      if (!secret.metadata.annotations?.["kubernetes.io/service-account.name"]) {
        errors.push(required("metadata.annotations[kubernetes.io/service-account.name]"));
      }
      break;
    case "kubernetes.io/dockercfg":
      errors.push(...jsonUnder(data, ".dockercfg"));
      break;
    case "kubernetes.io/dockerconfigjson":
      errors.push(...jsonUnder(data, ".dockerconfigjson"));
      break;
    case "kubernetes.io/basic-auth":
      if (!Object.hasOwn(data, "username") && !Object.hasOwn(data, "password")) {
        errors.push(required(mapKey("data", "username"), ""), required(mapKey("data", "password"), ""));
      }
      break;
    case "kubernetes.io/ssh-auth":
      if (!has("ssh-privatekey")) errors.push(required(mapKey("data", "ssh-privatekey"), ""));
      break;
    case "kubernetes.io/tls":
      if (!Object.hasOwn(data, "tls.crt")) errors.push(required(mapKey("data", "tls.crt"), ""));
      if (!Object.hasOwn(data, "tls.key")) errors.push(required(mapKey("data", "tls.key"), ""));
      break;
    default:
  }
  return errors;
}

function jsonUnder(data: Readonly<Record<string, string>>, key: string): FieldError[] {
  if (!Object.hasOwn(data, key)) return [required(mapKey("data", key), "")];
  try {
    JSON.parse(Buffer.from(data[key] as string, "base64").toString("utf8"));
    return [];
  } catch (err) {
    return [invalidValue(mapKey("data", key), "<secret contents redacted>", (err as Error).message)];
  }
}

function validateSecretUpdate(next: Secret, current: Secret): FieldError[] {
  const errors = immutableField(next.type, current.type, "type");
  if (current.immutable) {
    if (!next.immutable) errors.push(forbiddenField("immutable", "field is immutable when `immutable` is set"));
    if (!semanticEqual(next.data, current.data))
      errors.push(forbiddenField("data", "field is immutable when `immutable` is set"));
  }
  return [...errors, ...validateSecret(next)];
}
