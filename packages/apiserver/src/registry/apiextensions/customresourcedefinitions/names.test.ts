import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import { validateGroup, validateNames } from "./names.ts";

const good = { plural: "crons", singular: "cron", kind: "Cron", listKind: "CronList" };

for (const { name, names, want } of [
  { name: "good ones", names: { ...good, shortNames: ["c"], categories: ["all"] }, want: [] },
  { name: "only those that are needed", names: { plural: "crons", kind: "Cron" }, want: [] },
  { name: "a list of a kind that differs in its case", names: { ...good, listKind: "cron" }, want: [] },
  { name: "a list with the same kind", names: { ...good, listKind: "Cron" }, want: ["n.listKind"] },
  {
    name: "no label anywhere",
    names: { plural: "C", singular: "-", kind: "_", listKind: "9" },
    want: ["n.plural", "n.singular", "n.kind", "n.listKind"],
  },
  { name: "mixed case where it may not be", names: { ...good, singular: "Cron" }, want: ["n.singular"] },
  { name: "a second short name that is none", names: { ...good, shortNames: ["c", "C"] }, want: ["n.shortNames[1]"] },
  { name: "a short name that is not there", names: { ...good, shortNames: [null, "c"] }, want: ["n.shortNames[0]"] },
  { name: "a second category that is none", names: { ...good, categories: ["all", "a b"] }, want: ["n.categories[1]"] },
]) {
  test(`names: ${name}`, () => {
    const faults = validateNames(names as never, "n").map(formatFieldError);
    assert.deepEqual(
      faults.map((text) => text.split(":")[0]),
      want,
    );
  });
}

test("a group is a domain with a dot", () => {
  const faultOf = (group: string) => validateGroup(group, "g").map(formatFieldError).join();
  assert.equal(faultOf("example.com"), "");
  assert.match(faultOf(""), /^g: Required value/);
  assert.match(faultOf("example"), /should be a domain with at least one dot$/);
  assert.match(faultOf("Example.com"), /^g: Invalid value: "Example.com": a lowercase RFC 1123 subdomain/);
});

test("a missing short name is shown as an empty one", () => {
  const [fault] = validateNames({ ...good, shortNames: [null] } as never, "n").map(formatFieldError);
  assert.match(fault ?? "", /^n\.shortNames\[0\]: Invalid value: "": /);
});
