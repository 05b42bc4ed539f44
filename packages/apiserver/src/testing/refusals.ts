import assert from "node:assert/strict";
import { test } from "node:test";
import { type FieldError, formatFieldError } from "@coxswain/apimachinery/errors/field-error";

/** One wrong input of a kind, and all that is said of it, in order. */
export interface Refusal<Input> {
  readonly name: string;
  readonly input: Input;
  readonly want: readonly string[];
}

/** For tests: one test for each row of a kind's table of wrong inputs. No error wanted: the input is valid. */
export function testRefusals<Input>(check: (input: Input) => readonly FieldError[], rows: readonly Refusal<Input>[]): void {
  for (const { name, input, want } of rows) {
    test(`${want.length === 0 ? "takes" : "refuses"} ${name}`, () => {
      assert.deepEqual(check(input).map(formatFieldError), want);
    });
  }
}
