import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, ageColumn, nameColumn, tableOf, text } from "../../cells.ts";

export const secretTable = tableOf<Secret>(
  [
    nameColumn,
    text(
      "Type",
      "Used to facilitate programmatic handling of secret data. More info: https://kubernetes.io/docs/concepts/configuration/secret/#secret-types",
    ),
    text(
      "Data",
      "Data contains the secret data. Each key must consist of alphanumeric characters, '-', '_' or '.'. The serialized form of the secret data is a base64 encoded string, representing the arbitrary (possibly non-string) data value here. Described in https://tools.ietf.org/html/rfc4648#section-4",
    ),
    ageColumn,
  ],
  (secret, ages) => [secret.metadata.name ?? "", secret.type ?? "", Object.keys(secret.data ?? {}).length, age(secret, ages)],
);
