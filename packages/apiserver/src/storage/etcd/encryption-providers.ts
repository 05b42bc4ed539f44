/**
 * The providers of an EncryptionConfiguration. A stored value begins with the prefix of its writer,
 * `k8s:enc:aescbc:v1:<key name>:`, which selects the provider and key to decrypt it with.
 * Source: k8s.io/apiserver pkg/storage/value/encrypt/{aes,secretbox,identity}, pkg/storage/value/transformer.go
 */

import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { joinedFailures } from "@coxswain/apimachinery/objects/errors/joined-failures";
import { errorOf } from "@coxswain/apimachinery/process/narrowing/error-of";
import { xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import type { Direction, EncryptionMetricsOf } from "./encryption-metrics.ts";
import { isKeyOutOfReach, type TransformedValue, type Transformer } from "./transformer.ts";

export interface EncryptionKey {
  readonly name: string;
  readonly secret: Buffer;
}

/** A transformer and the prefix of its values. */
export interface PrefixedTransformer extends Transformer {
  readonly prefix: Buffer;
}

interface Cipher {
  seal(value: Buffer, key: Buffer, etcdKey: string): Buffer;
  /** @throws Error when the value was not sealed with this key. */
  open(sealed: Buffer, key: Buffer, etcdKey: string): Buffer;
}

const blockBytes = 16;

/**
 * CBC is not authenticated: padding oracle attacks are possible for anyone who can write to etcd.
 * Supported for compatibility with upstream.
 */
export const aescbc: Cipher = {
  seal(value, key) {
    const iv = randomBytes(blockBytes);
    const cipher = createCipheriv(`aes-${key.length * 8}-cbc`, key, iv);
    return Buffer.concat([iv, cipher.update(value), cipher.final()]);
  },
  open(sealed, key) {
    if (sealed.length < blockBytes) throw new Error("the stored data was shorter than the required size");
    if (sealed.length % blockBytes !== 0) throw new Error("the stored data is not a multiple of the block size");
    const cipher = createDecipheriv(`aes-${key.length * 8}-cbc`, key, sealed.subarray(0, blockBytes));
    try {
      return Buffer.concat([cipher.update(sealed.subarray(blockBytes)), cipher.final()]);
    } catch (err) {
      throw new Error("invalid padding on input", { cause: err });
    }
  },
};

const gcmNonceBytes = 12;
const gcmTagBytes = 16;
type GcmName = "aes-128-gcm" | "aes-192-gcm" | "aes-256-gcm";

/** Authenticates the etcd key: a value that was moved to another key is rejected. */
const aesgcm: Cipher = {
  seal(value, key, etcdKey) {
    const nonce = randomBytes(gcmNonceBytes);
    // Cast: validation accepts keys of 16, 24 and 32 bytes.
    const cipher = createCipheriv(`aes-${key.length * 8}-gcm` as GcmName, key, nonce, { authTagLength: gcmTagBytes });
    cipher.setAAD(Buffer.from(etcdKey));
    return Buffer.concat([nonce, cipher.update(value), cipher.final(), cipher.getAuthTag()]);
  },
  open(sealed, key, etcdKey) {
    if (sealed.length < gcmNonceBytes + gcmTagBytes) throw new Error("the stored data was shorter than the required size");
    const nonce = sealed.subarray(0, gcmNonceBytes);
    // Cast: validation accepts keys of 16, 24 and 32 bytes.
    const cipher = createDecipheriv(`aes-${key.length * 8}-gcm` as GcmName, key, nonce, { authTagLength: gcmTagBytes });
    cipher.setAAD(Buffer.from(etcdKey));
    cipher.setAuthTag(sealed.subarray(sealed.length - gcmTagBytes));
    try {
      return Buffer.concat([cipher.update(sealed.subarray(gcmNonceBytes, sealed.length - gcmTagBytes)), cipher.final()]);
    } catch (err) {
      throw new Error("cipher: message authentication failed", { cause: err });
    }
  },
};

const secretboxNonceBytes = 24;
const secretboxTagBytes = 16;

/** NaCl's secretbox (XSalsa20 and Poly1305), which node:crypto lacks. Format: nonce, authenticator, ciphertext. */
export const secretbox: Cipher = {
  seal(value, key) {
    const nonce = randomBytes(secretboxNonceBytes);
    return Buffer.concat([nonce, xsalsa20poly1305(key, nonce).encrypt(value)]);
  },
  open(sealed, key) {
    if (sealed.length < secretboxNonceBytes + secretboxTagBytes) {
      throw new Error("the stored data was shorter than the required size");
    }
    const cipher = xsalsa20poly1305(key, sealed.subarray(0, secretboxNonceBytes));
    try {
      const value = cipher.decrypt(sealed.subarray(secretboxNonceBytes));
      return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    } catch (err) {
      throw new Error("invalid data", { cause: err });
    }
  },
};

const ciphers = { aescbc, aesgcm, secretbox } as const;
export type CipherName = keyof typeof ciphers;

/** Encrypts with the first key, decrypts with any. */
export function encryptionProvider(
  name: CipherName,
  keys: readonly EncryptionKey[],
  metrics: EncryptionMetricsOf,
): PrefixedTransformer {
  const cipher = ciphers[name];
  const kind = name === "secretbox" ? "Secretbox" : "AES";
  const inner = firstWrites(
    keys.map((key) => ({
      prefix: Buffer.from(`${key.name}:`),
      toStored: (value, etcdKey) => cipher.seal(value, key.secret, etcdKey),
      fromStored: (stored, etcdKey) => ({ value: cipher.open(stored, key.secret, etcdKey), stale: false }),
    })),
    metrics,
    `no matching key was found for the provided ${kind} transformer`,
  );
  return { prefix: Buffer.from(`k8s:enc:${name}:v1:`), ...inner };
}

const encryptedPrefix = Buffer.from("k8s:enc:");

/** Stores plain text. Rejects values of other providers, wherever it is in the list. */
export const identityProvider: PrefixedTransformer = {
  prefix: Buffer.alloc(0),
  toStored: (value) => value,
  fromStored(stored) {
    if (startsWith(stored, encryptedPrefix)) throw new Error("identity transformer tried to read encrypted data");
    return { value: stored, stale: false };
  },
};

/**
 * Writes with the first transformer; values read with another one are stale. @param unmatched error text for an unknown prefix
 */
export function firstWrites(
  transformers: readonly PrefixedTransformer[],
  metrics: EncryptionMetricsOf,
  unmatched = "no matching prefix found",
): Transformer {
  const counted = transformers.map((transformer) => withMetrics(transformer, metrics));
  const [first] = counted;
  if (first === undefined) throw new Error("no transformer is configured");
  return {
    async toStored(value, key) {
      return Buffer.concat([first.prefix, await first.toStored(value, key)]);
    },
    fromStored(stored, key) {
      const began = performance.now();
      const isKnown = counted.some(({ prefix }) => startsWith(stored, prefix));
      if (!isKnown) metrics()?.transformed("from_storage", "unknown", secondsSince(began), unmatched);
      return readWithAny(counted, stored, key, unmatched);
    },
  };
}

/** Errors of the identity provider are not counted, since the next provider is tried. */
function withMetrics(transformer: PrefixedTransformer, metrics: EncryptionMetricsOf): PrefixedTransformer {
  const prefix = transformer.prefix.toString("latin1");
  const counting = (direction: Direction) => {
    const began = performance.now();
    return {
      done<Value>(value: Value): Value {
        metrics()?.transformed(direction, prefix, secondsSince(began));
        return value;
      },
      failed(err: unknown): never {
        if (prefix !== "") metrics()?.transformed(direction, prefix, secondsSince(began), err);
        throw err;
      },
    };
  };
  return {
    prefix: transformer.prefix,
    async toStored(value, key) {
      const { done, failed } = counting("to_storage");
      try {
        return done(await transformer.toStored(value, key));
      } catch (err) {
        return failed(err);
      }
    },
    fromStored(stored, key) {
      const { done, failed } = counting("from_storage");
      try {
        const found = transformer.fromStored(stored, key);
        return found instanceof Promise ? found.then(done, failed) : done(found);
      } catch (err) {
        return failed(err);
      }
    },
  };
}

function secondsSince(beganMs: number): number {
  return (performance.now() - beganMs) / 1000;
}

/**
 * Reads with the first transformer that succeeds among those with a matching prefix, beginning at index `from`: several
 * providers, or keys of the same name, may match.
 */
function readWithAny(
  transformers: readonly PrefixedTransformer[],
  stored: Buffer,
  key: string,
  unmatched: string,
  from = 0,
  errors: Error[] = [],
): TransformedValue | Promise<TransformedValue> {
  for (const [index, { prefix, fromStored }] of transformers.entries()) {
    if (index < from || !startsWith(stored, prefix)) continue;
    const note = (err: unknown): void => {
      // The identity provider only rejects values of the other providers.
      if (prefix.length > 0) errors.push(errorOf(err));
    };
    const markedStale = (found: TransformedValue): TransformedValue =>
      index === 0 ? found : { value: found.value, stale: true };
    try {
      const found = fromStored(stored.subarray(prefix.length), key);
      if (!(found instanceof Promise)) return markedStale(found);
      return found.then(markedStale, (err) => {
        note(err);
        return readWithAny(transformers, stored, key, unmatched, index + 1, errors);
      });
    } catch (err) {
      note(err);
    }
  }
  if (errors.length === 0) throw new Error(unmatched);
  const cause = errors.find(isKeyOutOfReach) ?? errors[0];
  throw new Error(joinedFailures(errors.map(({ message }) => message)), { cause });
}

function startsWith(bytes: Buffer, prefix: Buffer): boolean {
  return bytes.length >= prefix.length && bytes.subarray(0, prefix.length).equals(prefix);
}
