import assert from "node:assert/strict";
import { test } from "node:test";
import type { CustomResourceDefinition } from "./definitions.ts";
import { decideNames } from "./names.ts";

type Names = CustomResourceDefinition["spec"]["names"];

function aDefinition(spec: Names, accepted?: Names, conditions: object[] = []): CustomResourceDefinition {
  const status = { acceptedNames: accepted ?? { plural: "", kind: "" }, conditions, storedVersions: ["v1"] };
  return { metadata: { name: `${spec.plural}.example.com` }, spec: { group: "example.com", names: spec }, status } as never;
}

const widget: Names = { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList", shortNames: ["wd"] };

test("free names are accepted, and the resource is to be installed", () => {
  const definition = aDefinition({ ...widget, categories: ["all"] });
  const { acceptedNames, namesAccepted, established } = decideNames(definition, [definition]);
  assert.deepEqual(acceptedNames, { ...widget, categories: ["all"] });
  assert.deepEqual([namesAccepted.status, namesAccepted.reason], ["True", "NoConflicts"]);
  assert.deepEqual([established.status, established.reason], ["False", "Installing"]);
});

for (const { name, wanted, reason, message, accepted } of [
  {
    name: "a plural",
    wanted: { ...widget, singular: "x", kind: "X", listKind: "XList", shortNames: [] },
    reason: "PluralConflict",
    message: '"widgets" is already in use',
    accepted: { singular: "x", kind: "X" },
  },
  {
    name: "a short name that is another one's singular",
    wanted: { plural: "xs", singular: "x", kind: "X", listKind: "XList", shortNames: ["widget", "wd"] },
    reason: "ShortNamesConflict",
    message: '["widget" is already in use, "wd" is already in use]',
    accepted: { plural: "xs", singular: "x", kind: "X" },
  },
  {
    name: "a singular that is another one's plural",
    wanted: { plural: "xs", singular: "widgets", kind: "X", listKind: "XList" },
    reason: "SingularConflict",
    message: '"widgets" is already in use',
    accepted: { plural: "xs", kind: "X", listKind: "XList" },
  },
  {
    name: "a list that is another one's kind",
    wanted: { plural: "xs", singular: "x", kind: "X", listKind: "Widget" },
    reason: "ListKindConflict",
    message: '"Widget" is already in use',
    accepted: { plural: "xs", singular: "x", kind: "X" },
  },
  {
    name: "several names, of which the last one is named,",
    wanted: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "XList" },
    reason: "KindConflict",
    message: '"Widget" is already in use',
    accepted: { listKind: "XList" },
  },
  {
    name: "a kind that is another one's list",
    wanted: { plural: "xs", singular: "x", kind: "WidgetList", listKind: "XList" },
    reason: "KindConflict",
    message: '"WidgetList" is already in use',
    accepted: { plural: "xs", listKind: "XList" },
  },
] as const) {
  test(`${name} cannot be taken twice, the other names can`, () => {
    const other = aDefinition(widget, widget);
    const definition = aDefinition(wanted as never);
    const { acceptedNames, namesAccepted, established } = decideNames(definition, [other, definition]);
    assert.deepEqual(namesAccepted, { type: "NamesAccepted", status: "False", reason, message });
    assert.partialDeepStrictEqual(acceptedNames, accepted);
    assert.equal(established.reason, "NotAccepted");
  });
}

test("an established definition stays established when it requests a name that is taken", () => {
  const other = aDefinition(
    { ...widget, plural: "others", singular: "other", kind: "Other", listKind: "OtherList" },
    {
      plural: "others",
      singular: "other",
      kind: "Other",
      listKind: "OtherList",
    },
  );
  const was = { type: "Established", status: "True", reason: "InitialNamesAccepted" };
  const definition = aDefinition({ ...widget, shortNames: ["other"] }, widget, [was]);
  const { acceptedNames, established } = decideNames(definition, [other, definition]);
  assert.deepEqual([acceptedNames.shortNames, established], [["wd"], was]);
});

test("the second short name of another definition is taken too", () => {
  const other = aDefinition({ ...widget, shortNames: ["wd", "wi"] }, { ...widget, shortNames: ["wd", "wi"] });
  const definition = aDefinition({ plural: "xs", singular: "x", kind: "X", listKind: "XList", shortNames: ["wi"] });
  assert.equal(decideNames(definition, [other, definition]).namesAccepted.message, '"wi" is already in use');
});

test("a name that is no longer requested is no longer accepted", () => {
  const { shortNames: _, ...without } = widget;
  const definition = aDefinition(without, { ...widget, categories: ["all"] });
  assert.deepEqual(decideNames(definition, [definition]).acceptedNames, without);
});

test("a definition whose names were refused is installed when they are free", () => {
  const refused = { type: "Established", status: "False", reason: "NotAccepted", message: "not all names are accepted" };
  const definition = aDefinition(widget, undefined, [refused]);
  assert.partialDeepStrictEqual(decideNames(definition, [definition]).established, { status: "False", reason: "Installing" });
});
