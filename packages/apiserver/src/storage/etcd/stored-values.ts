import { internalError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { LongWork, Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { newEntry } from "../entry.ts";
import type { ObjectCodec } from "../object-codec.ts";
import type { Entry } from "../storage.ts";
import { isKeyOutOfReach, type TransformedValue, type Transformer } from "./transformer.ts";
import type { KeyValue } from "./wire.ts";

/** The state read before a write: the entry, and the bytes that the next state is compared with. */
export interface State {
  entry: Entry | undefined;
  /** Plain (untransformed) stored bytes; undefined for a cached suggestion. */
  bytes: Buffer | undefined;
  /** Written back even when nothing changes (the encryption key was rotated). */
  rewrite: boolean;
  /** Taken from a cache: errors of validation against it are retried on a fresh read. */
  suggested: boolean;
}

type PresentState = State & { entry: Entry };
type StoredValue = Pick<KeyValue, "key" | "value" | "modRevision">;

export const absent: State = { entry: undefined, bytes: undefined, rewrite: false, suggested: false };

interface StoredValuesOptions {
  readonly codec: ObjectCodec;
  readonly transformer: Transformer;
  /** `/registry/pods/`. */
  readonly prefix: string;
  readonly log: Logger;
  readonly turns: Turns;
}

/** Larger values are decoded in turns. */
const largeBytes = 64 * 1024;

/**
 * Decrypts and decodes the values of one resource; synchronously unless a KMS has to decrypt or the value is large.
 * All methods throw InternalError for a value that cannot be decoded, after they have logged it.
 */
export class StoredValues {
  readonly #options: StoredValuesOptions;

  constructor(options: StoredValuesOptions) {
    this.#options = options;
  }

  /** @param turns for large values */
  read(kv: StoredValue, turns: LongWork = this.#options.turns): PresentState | Promise<PresentState> {
    try {
      const plain = this.#options.transformer.fromStored(kv.value, kv.key);
      const state =
        plain instanceof Promise ? plain.then((found) => this.#stateOf(kv, found, turns)) : this.#stateOf(kv, plain, turns);
      return state instanceof Promise ? state.catch((err) => this.#unreadable(kv, err)) : state;
    } catch (err) {
      return this.#unreadable(kv, err);
    }
  }

  #stateOf(kv: StoredValue, { value, stale }: TransformedValue, turns: LongWork): PresentState | Promise<PresentState> {
    const { codec, prefix } = this.#options;
    const stateWith = (object: KubeObject): PresentState => {
      const entry = newEntry(codec, kv.key.slice(prefix.length), kv.modRevision, object);
      entry.decodedFrom(value);
      return { entry, bytes: value, rewrite: stale, suggested: false };
    };
    if (value.length < largeBytes) return stateWith(codec.fromStored(value));
    const object = turns.run(codec.fromStoredInSteps(value));
    return object instanceof Promise ? object.then(stateWith) : stateWith(object);
  }

  #unreadable({ key }: StoredValue, cause: unknown): never {
    this.#options.log.error("cannot decode a value in etcd", cause, { key });
    throw internalError(new Error(`unable to decode the value of ${key} in etcd`, { cause }));
  }

  /** @param turns for large values */
  entry(kv: StoredValue, turns?: LongWork): Entry | Promise<Entry> {
    const state = this.read(kv, turns);
    return state instanceof Promise ? state.then(({ entry }) => entry) : state.entry;
  }

  /** An entry of an initial list. @param isReadSoon it stays decoded */
  initialEntry(kv: StoredValue, isReadSoon: boolean): Entry | Promise<Entry> {
    const state = this.read(kv);
    return state instanceof Promise ? state.then((read) => kept(read, isReadSoon)) : kept(state, isReadSoon);
  }
}

/** Skips a value that can never be decoded, so that it does not disable the whole resource; rethrows temporary failures. */
export function passOver(err: unknown): undefined {
  if (isKeyOutOfReach(err)) throw err;
}

function kept({ entry, bytes }: PresentState, isReadSoon: boolean): Entry {
  if (isReadSoon && bytes !== undefined && bytes.length < largeBytes) entry.stayWarm(bytes);
  else entry.cool(bytes);
  return entry;
}
