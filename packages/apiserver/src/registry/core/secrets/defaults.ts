import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Merges the write-only `stringData` into `data`. Source: pkg/apis/core/v1/{defaults,conversion}.go */
export function defaultSecret(object: KubeObject): void {
  const secret: Secret = object;
  secret.type ||= "Opaque";
  if (secret.stringData === undefined || secret.stringData === null) return;
  const data: Record<string, string> = secret.data ?? {};
  for (const [key, value] of Object.entries(secret.stringData)) {
    Object.defineProperty(data, key, {
      value: Buffer.from(value).toString("base64"),
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  if (Object.keys(data).length > 0) secret.data = data;
  delete secret.stringData;
}
