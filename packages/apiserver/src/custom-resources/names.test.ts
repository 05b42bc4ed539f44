import assert from "node:assert/strict";
import { test } from "node:test";
import type { CustomResourceDefinitionNames } from "@coxswain/apimachinery/schema/kinds/apiextensions/v1";
import type { CustomResourceDefinition } from "./definitions.ts";
import { decideNames } from "./names.ts";

const foos: CustomResourceDefinitionNames = { plural: "foos", singular: "foo", kind: "Foo", listKind: "FooList" };

function aDefinition(
  names: CustomResourceDefinitionNames,
  acceptedNames?: CustomResourceDefinitionNames,
): CustomResourceDefinition {
  const status = acceptedNames === undefined ? undefined : { acceptedNames, conditions: [], storedVersions: [] };
  return { spec: { names }, status } as unknown as CustomResourceDefinition;
}

for (const { name, wanted, had, others = [], accepted = wanted, conflict } of [
  { name: "all of the first of its group, which has no short names", wanted: foos },
  { name: "all of one beside another that is as new", wanted: foos, others: [aDefinition({ plural: "bars", kind: "Bar" })] },
  { name: "its own again", wanted: { ...foos, shortNames: ["fo"] }, had: { ...foos, shortNames: ["fo"] } },
  { name: "without the short names that it gave up", wanted: foos, had: { ...foos, shortNames: ["fo"] } },
  {
    name: "not the kind that another has",
    wanted: foos,
    others: [aDefinition(foos, { plural: "others", kind: "Foo" })],
    accepted: { plural: "foos", singular: "foo", kind: "", listKind: "FooList" },
    conflict: { reason: "KindConflict", message: '"Foo" is already in use' },
  },
  {
    name: "not the short names that others have, and the rest",
    wanted: { ...foos, shortNames: ["a", "b", "c"] },
    others: [aDefinition(foos, { plural: "a", kind: "A", shortNames: ["b"] })],
    accepted: foos,
    conflict: { reason: "ShortNamesConflict", message: '["a" is already in use, "b" is already in use]' },
  },
] as {
  name: string;
  wanted: CustomResourceDefinitionNames;
  had?: CustomResourceDefinitionNames;
  others?: CustomResourceDefinition[];
  accepted?: CustomResourceDefinitionNames;
  conflict?: { reason: string; message: string };
}[]) {
  test(`a definition is given ${name}`, () => {
    const definition = aDefinition(wanted, had);
    const { acceptedNames, namesAccepted } = decideNames(definition, [...others, definition]);
    assert.deepEqual(acceptedNames, accepted);
    const { reason, message } = conflict ?? { reason: "NoConflicts", message: "no conflicts found" };
    assert.deepEqual(namesAccepted, { type: "NamesAccepted", status: conflict ? "False" : "True", reason, message });
  });
}
