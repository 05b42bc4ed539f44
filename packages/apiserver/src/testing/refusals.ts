import assert from "node:assert/strict";
import { test } from "node:test";
import { type FieldError, formatFieldError } from "@coxswain/apimachinery/objects/errors/field-error";

/** An invalid input and all expected errors in order. */
interface Refusal<Input> {
  readonly name: string;
  readonly input: Input;
  readonly want: readonly string[];
}

/** Defines one test per row of a validation table; an empty `want` means that the input is valid. */
export function testRefusals<Input>(check: (input: Input) => readonly FieldError[], rows: readonly Refusal<Input>[]): void {
  for (const { name, input, want } of rows) {
    test(`${want.length === 0 ? "takes" : "refuses"} ${name}`, () => {
      assert.deepEqual(check(input).map(formatFieldError), want);
    });
  }
}
