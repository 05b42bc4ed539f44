import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import type { DeleteOptions } from "@coxswain/apimachinery/objects/meta/types";
import { validateDeleteOptions } from "./delete-options.ts";

for (const { name, options, want } of [
  { name: "nothing", options: {}, want: [] },
  { name: "a policy and a dry run", options: { propagationPolicy: "Orphan", dryRun: ["All", "All"] }, want: [] },
  { name: "the old way to orphan alone", options: { orphanDependents: false }, want: [] },
  {
    name: "both ways to orphan",
    options: { propagationPolicy: "Background", orphanDependents: false },
    want: ['propagationPolicy: Invalid value: "Background": orphanDependents and deletionPropagation cannot be both set'],
  },
  {
    name: "an unknown policy",
    options: { propagationPolicy: "orphan" },
    want: ['propagationPolicy: Unsupported value: "orphan": supported values: "Foreground", "Background", "Orphan", "nil"'],
  },
  {
    name: "another dry run than of all",
    options: { dryRun: ["All", "None"] },
    want: ['dryRun: Unsupported value: []string{"All", "None"}: supported values: "All"'],
  },
]) {
  test(`options of a deletion: ${name}`, () => {
    assert.deepEqual(validateDeleteOptions(options as DeleteOptions).map(formatFieldError), want);
  });
}
