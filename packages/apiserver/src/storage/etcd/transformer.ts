/**
 * The last step before a value reaches etcd and the first after it leaves: encryption at rest.
 * Source: k8s.io/apiserver pkg/storage/value/transformer.go
 */
export interface Transformer {
  /** @param key the whole etcd key: authenticated with the value, so that a value cannot be moved to another key. */
  toStored(value: Buffer, key: string): Buffer | Promise<Buffer>;
  /**
   * @returns `stale` when the value was written with a key or a provider that is not the first one: the next update
   *   writes it even when it changes nothing. A promise only where somebody else has the key (a KMS): everything that
   *   reads goes on at once otherwise.
   */
  fromStored(stored: Buffer, key: string): TransformedValue | Promise<TransformedValue>;
}

export interface TransformedValue {
  value: Buffer;
  stale: boolean;
}

/** Who has the key of a value does not give it now: the value is there, and may be read later. */
export class KeyOutOfReach extends Error {}

/** @param err or what caused it */
export function isKeyOutOfReach(err: unknown): boolean {
  return err instanceof KeyOutOfReach || (err instanceof Error && err.cause !== undefined && isKeyOutOfReach(err.cause));
}

/** Values as they are. */
export const identityTransformer: Transformer = {
  toStored: (value) => value,
  fromStored: (value) => ({ value, stale: false }),
};
