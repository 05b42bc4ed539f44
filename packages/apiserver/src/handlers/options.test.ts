import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceDefinition } from "../registry/generic/resource.ts";
import { boolParam, checkFieldSelector, deleteOptions, intParam, listOptions, listRequest, writeOptions } from "./options.ts";

const never = new AbortController().signal;

for (const { query, code, text } of [
  {
    query: "resourceVersionMatch=Exact",
    code: 422,
    text: "resourceVersionMatch is forbidden unless resourceVersion is provided",
  },
  {
    query: "resourceVersionMatch=Exact&resourceVersion=0",
    code: 422,
    text: 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
  },
  { query: "resourceVersionMatch=Some&resourceVersion=5", code: 422, text: 'supported values: "Exact", "NotOlderThan", ""' },
  {
    query: "resourceVersionMatch=Exact&resourceVersion=5&watch=1",
    code: 422,
    text: "resourceVersionMatch is forbidden for watch",
  },
  { query: "resourceVersionMatch=Exact&resourceVersion=5&continue=x", code: 422, text: "forbidden when continue is provided" },
  { query: "limit=ten", code: 400, text: 'strconv.ParseInt: parsing "ten": invalid syntax' },
  { query: "limit=99999999999999999999", code: 400, text: "value out of range" },
  {
    query: "labelSelector=a%20b%20c",
    code: 400,
    text: "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
  },
  { query: "fieldSelector=nothing", code: 400, text: "invalid selector: 'nothing'; can't understand 'nothing'" },
  { query: "continue=x&resourceVersion=5", code: 400, text: "specifying resource version is not allowed when using continue" },
  { query: "resourceVersion=five", code: 500, text: 'resourceVersion: Invalid value: "five": strconv.ParseUint' },
  { query: "resourceVersion=five&limit=5", code: 400, text: 'invalid resource version: resourceVersion: Invalid value: "five"' },
  { query: "resourceVersion=five&continue=x", code: 400, text: "invalid resource version" },
  { query: "resourceVersion=five&resourceVersionMatch=Exact", code: 400, text: "invalid resource version" },
]) {
  test(`refuses a list with ${query}`, () => {
    assert.throws(
      () => listRequest(listOptions(new URLSearchParams(query)), never, true, true),
      (err: unknown) => err instanceof StatusError && err.code === code && (err.status.message ?? "").includes(text),
    );
  });
}

for (const { query, chunking, code } of [
  { query: "resourceVersion=five&limit=5", chunking: false, code: 500 },
  { query: "resourceVersion=five&limit=5", chunking: true, code: 400 },
  { query: "resourceVersion=five&continue=x", chunking: false, code: 400 },
]) {
  test(`a list with ${query} ${chunking ? "and" : "without"} chunking is ${code}, as the reader of that list says it`, () => {
    assert.throws(() => listRequest(listOptions(new URLSearchParams(query)), never, chunking, true), { code });
  });
}

test("a continue token with resourceVersion 0 is taken as the token alone", () => {
  const request = listRequest(listOptions(new URLSearchParams("continue=abc&limit=5&resourceVersion=0")), never, true, true);
  assert.equal(request.continueToken, "abc");
  assert.equal(request.limit, 5);
  assert.equal(request.revision, undefined);
});

test("names the kind of options that it refuses", () => {
  assert.throws(
    () => listOptions(new URLSearchParams("resourceVersionMatch=Exact")),
    /^StatusError: ListOptions\.meta\.k8s\.io "" is invalid: |ListOptions\.meta\.k8s\.io "" is invalid/,
  );
});

for (const { query, allowed } of [
  { query: "", allowed: true },
  { query: "dryRun=All", allowed: true },
  { query: "dryRun", allowed: false },
  { query: "dryRun=all", allowed: false },
  { query: "dryRun=All&dryRun=None", allowed: false },
  { query: "fieldValidation=Loose", allowed: false },
  { query: "fieldManager=%07", allowed: false },
  { query: `fieldManager=${"m".repeat(129)}`, allowed: false },
  { query: "fieldManager=kubectl-client-side-apply", allowed: true },
]) {
  test(`${allowed ? "takes" : "refuses"} a create with ?${query.slice(0, 40)}`, () => {
    const read = (): unknown => writeOptions(new URLSearchParams(query), "CreateOptions");
    if (allowed) assert.doesNotThrow(read);
    else assert.throws(read, (err: unknown) => err instanceof StatusError && err.code === 422);
  });
}

test("every dryRun of a deletion's body counts, not only the first", () => {
  const read = (...dryRun: string[]) => deleteOptions(new URLSearchParams(), { dryRun });
  assert.deepEqual(read("All", "All").dryRun, ["All", "All"]);
  assert.throws(
    () => read("All", "None"),
    (err: unknown) => err instanceof StatusError && err.code === 422,
  );
});

const write = (kind: "CreateOptions" | "UpdateOptions" | "PatchOptions", isApply = false) => ({
  kind,
  read: (query: URLSearchParams): unknown => writeOptions(query, kind, isApply),
});
const list = { kind: "ListOptions", read: (query: URLSearchParams): unknown => listOptions(query) };
const remove = { kind: "DeleteOptions", read: (query: URLSearchParams): unknown => deleteOptions(query, undefined) };

for (const { of, query, want } of [
  {
    of: list,
    query: "resourceVersionMatch=NotOlderThan",
    want: ["resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"],
  },
  {
    of: list,
    query: "resourceVersionMatch=exact&resourceVersion=5&continue=x",
    want: [
      "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
      'resourceVersionMatch: Unsupported value: "exact": supported values: "Exact", "NotOlderThan", ""',
    ],
  },
  {
    of: list,
    query: "resourceVersionMatch=Exact&resourceVersion=0",
    want: ['resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'],
  },
  {
    of: list,
    query: "resourceVersionMatch=Some&watch=1&continue=x",
    want: [
      "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch",
      "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
      "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
      'resourceVersionMatch: Unsupported value: "Some": supported values: "Exact", "NotOlderThan", ""',
    ],
  },
  {
    of: write("CreateOptions"),
    query: "dryRun=all",
    want: ['dryRun: Unsupported value: []string{"all"}: supported values: "All"'],
  },
  {
    of: write("UpdateOptions"),
    query: `fieldManager=${"m".repeat(129)}&fieldValidation=Loose`,
    want: [
      "fieldManager: Too long: must have at most 128 bytes",
      'fieldValidation: Unsupported value: "Loose": supported values: "", "Ignore", "Strict", "Warn"',
    ],
  },
  {
    of: write("PatchOptions"),
    query: "force=false&fieldManager=a%07",
    want: [
      "force: Forbidden: may not be specified for non-apply patch",
      'fieldManager: Invalid value: "a\\a": invalid character U+0007 (at position 1)',
    ],
  },
  { of: write("PatchOptions", true), query: "", want: ["fieldManager: Required value: is required for apply patch"] },
  {
    of: remove,
    query: "propagationPolicy=Foreground&orphanDependents=false",
    want: ['propagationPolicy: Invalid value: "Foreground": orphanDependents and deletionPropagation cannot be both set'],
  },
  {
    of: remove,
    query: "propagationPolicy=Sideways&dryRun=None",
    want: [
      'propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"',
      'dryRun: Unsupported value: []string{"None"}: supported values: "All"',
    ],
  },
]) {
  test(`${of.kind} say what is wrong with ?${query.slice(0, 40)}`, () => {
    assert.throws(
      () => of.read(new URLSearchParams(query)),
      (err: unknown) => {
        assert.ok(err instanceof StatusError);
        assert.equal(err.status.details?.kind, of.kind);
        assert.deepEqual(
          err.status.details?.causes?.map(({ field, message }) => `${field}: ${message}`),
          want,
        );
        return true;
      },
    );
  });
}

test("force belongs to apply alone, and apply needs a manager", () => {
  assert.throws(
    () => writeOptions(new URLSearchParams("force=true"), "PatchOptions"),
    /may not be specified for non-apply patch/,
  );
  assert.throws(() => writeOptions(new URLSearchParams(""), "PatchOptions", true), /is required for apply patch/);
});

test("the body of a delete replaces its query", () => {
  const query = new URLSearchParams("gracePeriodSeconds=7");
  assert.deepEqual(deleteOptions(query, undefined), { gracePeriodSeconds: 7 });
  assert.deepEqual(deleteOptions(query, { propagationPolicy: "Orphan" }), { propagationPolicy: "Orphan" });
});

test("a grace period of 0 counts as set", () => {
  assert.deepEqual(deleteOptions(new URLSearchParams("gracePeriodSeconds=0"), undefined), { gracePeriodSeconds: 0 });
});

test("zero values of a delete's body count as set, null and empty ones do not", () => {
  const zeros = { gracePeriodSeconds: 0, orphanDependents: false, preconditions: {} };
  assert.deepEqual(deleteOptions(new URLSearchParams(), zeros), zeros);
  const none = { gracePeriodSeconds: null, orphanDependents: null, preconditions: null, propagationPolicy: null, dryRun: [] };
  assert.deepEqual(deleteOptions(new URLSearchParams(), none as never), {});
});

test("each value of a delete's query counts, false and every dryRun too", () => {
  assert.deepEqual(deleteOptions(new URLSearchParams("orphanDependents=false&dryRun=All&dryRun=All"), undefined), {
    orphanDependents: false,
    dryRun: ["All", "All"],
  });
  assert.throws(() => deleteOptions(new URLSearchParams("dryRun=All&dryRun=None"), undefined), { code: 422 });
});

test("only an exact match is refused for resourceVersion 0, and every field of a read is passed on", () => {
  const query = "resourceVersionMatch=NotOlderThan&resourceVersion=0&labelSelector=a%3Db&fieldSelector=metadata.name%3Dc";
  const { match, revision, labels, fields, signal } = listRequest(listOptions(new URLSearchParams(query)), never, true, true);
  assert.deepEqual([match, revision, labels?.matches({ a: "c" }), labels?.matches({ a: "b" })], ["NotOlderThan", 0, false, true]);
  assert.deepEqual([fields?.requiresExact("metadata.name"), signal], ["c", never]);
});

for (const [text, want] of [
  ["9223372036854775807", 2 ** 63], // the nearest double
  ["-9223372036854775808", -(2 ** 63)],
  ["+7", 7],
] as const) {
  test(`the parameter ${text} is an integer of 64 bits`, () => {
    assert.equal(intParam(new URLSearchParams({ a: text }), "a"), want);
  });
}

for (const text of [
  "9223372036854775808",
  "+9223372036854775808",
  "-9223372036854775809",
  "9223372036854777856", // the next double
  "-9223372036854777856",
  "9".repeat(400),
]) {
  test(`the parameter ${text.slice(0, 20)} of ${text.length} characters is out of the range of 64 bits`, () => {
    const parsing = () => intParam(new URLSearchParams({ a: text }), "a");
    assert.throws(parsing, { code: 400, message: `strconv.ParseInt: parsing "${text}": value out of range` });
  });
}

for (const { what, definition, known } of [
  { what: "a namespaced custom resource", definition: { custom: true, namespaced: true }, known: true },
  { what: "a custom resource without namespaces", definition: { custom: true, namespaced: false }, known: false },
  { what: "a built-in resource without namespaces", definition: { namespaced: false }, known: true },
]) {
  test(`${what} ${known ? "may" : "may not"} be selected by its namespace`, () => {
    const check = () =>
      checkFieldSelector(
        definition as unknown as ResourceDefinition,
        listOptions(new URLSearchParams({ fieldSelector: "metadata.namespace=a" })).fields,
      );
    if (known) assert.doesNotThrow(check);
    else assert.throws(check, /"metadata.namespace" is not a known field selector/);
  });
}

for (const { query, chunking, limit } of [
  { query: "limit=5", chunking: true, limit: 5 },
  { query: "limit=5", chunking: false, limit: undefined },
  { query: "limit=0", chunking: true, limit: undefined },
  { query: "limit=-5", chunking: true, limit: undefined },
]) {
  test(`a list with ${query} ${chunking ? "and" : "without"} chunking has the limit ${limit}`, () => {
    const options = listOptions(new URLSearchParams(query));
    assert.ok(options.limit >= 0);
    assert.equal(listRequest(options, never, chunking, true).limit, limit);
  });
}

test("each term of a field selector has to be known", () => {
  const check = (fieldSelector: string) =>
    checkFieldSelector(
      { selectableFields: () => ({ type: "" }) } as unknown as ResourceDefinition,
      listOptions(new URLSearchParams({ fieldSelector })).fields,
    );
  check("metadata.name=a,type=b");
  assert.throws(() => check("metadata.name=a,other=b"), /field label not supported: other/);
  assert.throws(() => check("type=a,other=b"), /field label not supported: other/);
});

test("propagationPolicy and orphanDependents exclude each other", () => {
  const query = new URLSearchParams("propagationPolicy=Orphan&orphanDependents=true");
  assert.throws(() => deleteOptions(query, undefined), /cannot be both set/);
});

test("a bare parameter is true, false and 0 are not", () => {
  const query = new URLSearchParams("a&b=&c=0&d=False&e=1");
  assert.deepEqual(
    ["a", "b", "c", "d", "e", "f"].map((name) => boolParam(query, name)),
    [true, true, false, false, true, undefined],
  );
  assert.throws(() => intParam(new URLSearchParams("a="), "a"), /invalid syntax/);
});
