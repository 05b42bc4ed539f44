/**
 * Envelope encryption with a KMS. Each value has its own data key, stored in front of it in the form encrypted by the KMS.
 * Decrypted data keys are cached, so that most reads do not call the KMS.
 *
 *     k8s:enc:kms:v1:<name>:  <2 bytes: length>  <encrypted data key>  <AES-CBC of the value with the data key>
 *
 * Source: k8s.io/apiserver pkg/storage/value/encrypt/envelope/envelope.go
 */
import { randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { EncryptionMetricsOf } from "./encryption-metrics.ts";
import { aescbc, type PrefixedTransformer } from "./encryption-providers.ts";
import type { KmsService } from "./kms-service.ts";

interface EnvelopeOptions {
  readonly name: string;
  readonly service: KmsService;
  /** Maximum number of cached data keys; negative: no cache, each read calls the KMS. */
  readonly cacheSize: number;
  readonly metrics: EncryptionMetricsOf;
}

const dataKeyBytes = 32;
const lengthBytes = 2;

/** The provider `kms`: the prefix `k8s:enc:kms:v1:<name>:` and the envelope transformer. */
export function envelopeProvider({ name, service, cacheSize, metrics }: EnvelopeOptions): PrefixedTransformer {
  const dataKeys = cacheSize > 0 ? new LRUCache<string, Buffer>({ max: cacheSize }) : undefined;
  const remember = (encrypted: Buffer, dataKey: Buffer): void => {
    if (dataKeys === undefined) return;
    dataKeys.set(encrypted.toString("base64"), dataKey);
    metrics()?.dataKeysKept(dataKeys.size / cacheSize);
  };
  return {
    prefix: Buffer.from(`k8s:enc:kms:v1:${name}:`),
    async toStored(value, etcdKey) {
      metrics()?.arrived("to_storage");
      const began = performance.now();
      const dataKey = randomBytes(dataKeyBytes);
      metrics()?.dataKeyMade((performance.now() - began) / 1000);
      const encrypted = await service.encrypt(dataKey);
      if (encrypted.length > 0xffff) throw new Error("the encrypted data key is longer than 65535 bytes");
      remember(encrypted, dataKey);
      const length = Buffer.alloc(lengthBytes);
      length.writeUInt16BE(encrypted.length);
      return Buffer.concat([length, encrypted, aescbc.seal(value, dataKey, etcdKey)]);
    },
    fromStored(stored, etcdKey) {
      metrics()?.arrived("from_storage");
      const start = lengthBytes + (stored.length < lengthBytes ? 0 : stored.readUInt16BE());
      if (stored.length < start) {
        throw new Error("invalid data encountered by envelope transformer: failed to read uint16 length prefixed data");
      }
      const encrypted = stored.subarray(lengthBytes, start);
      const sealed = stored.subarray(start);
      const open = (dataKey: Buffer) => ({ value: aescbc.open(sealed, dataKey, etcdKey), stale: false });
      const known = dataKeys?.get(encrypted.toString("base64"));
      if (known !== undefined) return open(known);
      if (dataKeys !== undefined) metrics()?.dataKeyMissed();
      return service.decrypt(encrypted).then((dataKey) => {
        remember(encrypted, dataKey);
        return open(dataKey);
      });
    },
  };
}
