import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { KmsService } from "./kms-service.ts";

const goodForMs = 20_000;
const badForMs = 3_000;

/**
 * Health check that encrypts and decrypts with the KMS; the result is cached for `goodForMs` or `badForMs`.
 * Source: k8s.io/apiserver pkg/server/options/encryptionconfig/config.go, kmsPluginProbe
 */
export function newKmsCheck(name: string, service: KmsService, clock: Clock): () => Promise<void> {
  let last: { readonly error: Error | undefined; readonly untilMs: number } | undefined;
  let checking: Promise<Error | undefined> | undefined;

  async function check(): Promise<Error | undefined> {
    let section = "encrypt";
    let error: Error | undefined;
    try {
      const cipher = await service.encrypt(Buffer.from("ping"));
      section = "decrypt";
      await service.decrypt(cipher);
    } catch (cause) {
      const text = `failed to perform ${section} section of the healthz check for KMS Provider ${name}, error: ${messageOf(cause)}`;
      error = new Error(text, { cause });
    }
    last = { error, untilMs: clock.monotonic() + (error === undefined ? goodForMs : badForMs) };
    return error;
  }

  return async () => {
    if (last === undefined || clock.monotonic() >= last.untilMs) {
      checking ??= check().finally(() => {
        checking = undefined;
      });
      await checking;
    }
    if (last?.error !== undefined) throw last.error;
  };
}
