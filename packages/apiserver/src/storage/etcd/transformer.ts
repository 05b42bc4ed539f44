/**
 * Encryption at rest: converts values before they are written to etcd and after they are read.
 * Source: k8s.io/apiserver pkg/storage/value/transformer.go
 */
export interface Transformer {
  /** @param key the full etcd key; authenticated together with the value, so that a value cannot be moved to another key */
  toStored(value: Buffer, key: string): Buffer | Promise<Buffer>;
  /**
   * @returns `stale` when the value was not written with the first key of the first provider: the next update then writes it
   * even when nothing changes. A promise only when a KMS has to decrypt the data key; synchronous otherwise.
   */
  fromStored(stored: Buffer, key: string): TransformedValue | Promise<TransformedValue>;
}

export interface TransformedValue {
  value: Buffer;
  stale: boolean;
}

/** The key of a value is temporarily unavailable; the value may be readable later. */
export class KeyOutOfReach extends Error {}

/** @param err checked together with its causes */
export function isKeyOutOfReach(err: unknown): boolean {
  return err instanceof KeyOutOfReach || (err instanceof Error && err.cause !== undefined && isKeyOutOfReach(err.cause));
}

/** Stores values unchanged. */
export const identityTransformer: Transformer = {
  toStored: (value) => value,
  fromStored: (value) => ({ value, stale: false }),
};
