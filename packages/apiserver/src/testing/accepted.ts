import assert from "node:assert/strict";
import { test } from "node:test";
import { faultsOf } from "./kind-rules.ts";
import { smallestObjects } from "./smallest-objects.ts";

type Changes = Readonly<Record<string, unknown>>;

/** A table row: changes of a valid object that are accepted, and changes that are not. */
export interface Accepted {
  readonly resource: string;
  /** Default: the smallest object of the kind. */
  readonly valid?: object;
  /** What the changes have in common. */
  readonly name: string;
  /** Makes the changes updates, of the object with these values. */
  readonly before?: Changes;
  /** Values that the object has beside the changes. */
  readonly with?: Changes;
  readonly status?: true;
  readonly undefaulted?: true;
  readonly gates?: Readonly<Record<string, boolean>>;
  readonly requestVersion?: string;
  readonly taken: readonly Changes[];
  /** Each with the beginning of its only error, `field: message`. */
  readonly refused?: readonly (readonly [Changes, string])[];
}

/** Defines one test per row. */
export function testAccepted(rows: readonly Accepted[]): void {
  for (const { resource, name, valid = smallestOf(resource), with: also = {}, before, taken, refused = [], ...options } of rows) {
    test(`${resource}: ${before ? "update" : "create"}: ${name}`, () => {
      const faults = (change: Changes): string[] =>
        faultsOf(resource, valid, {
          ...options,
          change: { ...also, ...change },
          ...(before && { before: { ...also, ...before } }),
        });
      for (const change of taken) assert.deepEqual(faults(change), [], JSON.stringify(change).slice(0, 200));
      for (const [change, want] of refused) {
        const found = faults(change).map((fault) => fault.slice(0, want.length));
        assert.deepEqual(found, [want], JSON.stringify(change).slice(0, 200));
      }
    });
  }
}

const smallestOf = (resource: string): object => smallestObjects[resource.split(".")[0] ?? ""] ?? {};
