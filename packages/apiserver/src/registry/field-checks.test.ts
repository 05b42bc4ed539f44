import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import type { LabelSelector } from "@coxswain/apimachinery/objects/meta/types";
import {
  checkLabelSelector,
  checkNonSpecialIp,
  configMapKeyProblems,
  envVarNameProblems,
  httpHeaderNameProblems,
  isEmptySelector,
  percentProblems,
  portNameProblems,
} from "./field-checks.ts";

for (const { ip, bad } of [
  { ip: "10.0.0.1", bad: false },
  { ip: "2001:db8::1", bad: false },
  { ip: "127.0.0.1", bad: true },
  { ip: "127.1.2.3", bad: true },
  { ip: "::ffff:127.0.0.1", bad: true },
  { ip: "::ffff:a9fe:a9fe", bad: true },
  { ip: "169.254.169.254", bad: true },
  { ip: "0.0.0.0", bad: true },
  { ip: "::", bad: true },
  { ip: "0:0:0:0:0:0:0:1", bad: true },
  { ip: "fe80::1", bad: true },
  { ip: "224.0.0.1", bad: true },
  { ip: "ff02::1", bad: true },
  { ip: "ff12::1", bad: true },
  { ip: "ff05::1", bad: false },
  { ip: "224.0.1.1", bad: false },
  { ip: "169.253.0.1", bad: false },
  { ip: "febf::1", bad: true },
  { ip: "fec0::1", bad: false },
  { ip: "::2", bad: false },
]) {
  test(`${ip} ${bad ? "may not" : "may"} be an endpoint`, () => assert.equal(checkNonSpecialIp(ip, "ip").length > 0, bad));
}

test("port names are short, lower case and have a letter", () => {
  assert.deepEqual(portNameProblems("https-1"), []);
  for (const name of ["80", "8-0"]) assert.deepEqual(portNameProblems(name), ["must contain at least one letter (a-z)"]);
  assert.deepEqual(portNameProblems("a--b"), ["must not contain consecutive hyphens"]);
  assert.deepEqual(portNameProblems("a".repeat(15)), []);
  assert.deepEqual(portNameProblems("a".repeat(16)), ["must be no more than 15 characters"]);
  for (const name of ["-a", "a-"]) assert.deepEqual(portNameProblems(name), ["must not begin or end with a hyphen"]);
});

const keyText =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
for (const { key, problems } of [
  { key: ".a", problems: [] },
  { key: "A_b-c.0", problems: [] },
  { key: "a".repeat(253), problems: [] },
  { key: "a".repeat(254), problems: ["must be no more than 253 characters"] },
  { key: `.${"a".repeat(253)}`, problems: ["must be no more than 253 characters"] },
  { key: "é".repeat(126), problems: [keyText] },
  { key: "é".repeat(127), problems: ["must be no more than 253 characters", keyText] },
  { key: "", problems: [keyText] },
  { key: ".", problems: ["must not be '.'"] },
  { key: "..", problems: ["must not be '..'"] },
  { key: "..a", problems: ["must not start with '..'"] },
  { key: "../", problems: [keyText, "must not start with '..'"] },
]) {
  test(`the key ${key.slice(0, 9)} of ${key.length} characters ${problems.length > 0 ? "is refused" : "is taken"}`, () => {
    assert.deepEqual(configMapKeyProblems(key), problems);
  });
}

for (const { what, problemsOf, valid, invalid } of [
  {
    what: "a variable",
    problemsOf: envVarNameProblems,
    valid: ["_A", "-a", ".a", "a1.b"],
    invalid: ["1a", "a=b", "", ".", "..", "..a"],
  },
  { what: "a header", problemsOf: httpHeaderNameProblems, valid: ["X-1", "-"], invalid: ["X_1", "a b", ""] },
  { what: "a percentage", problemsOf: percentProblems, valid: ["0%", "101%"], invalid: ["%", "1", "-1%", "1.5%", "1%%"] },
]) {
  test(`${what} is one of ${valid.join(" ")}, and none of ${invalid.join(" ")}`, () => {
    for (const text of valid) assert.deepEqual(problemsOf(text), [], text);
    for (const text of invalid) assert.notEqual(problemsOf(text).length, 0, text);
  });
}

test("each expression of a selector has a key and an operator, and values where the operator takes some", () => {
  const matchExpressions = [
    { key: "a", operator: "In", values: ["b"] },
    { key: "a", operator: "NotIn", values: ["b c"] },
    { key: "a", operator: "Exists" },
    { key: "a", operator: "DoesNotExist", values: [] },
    { key: "a", operator: "In" },
    { key: "a", operator: "NotIn", values: [] },
    { key: "a", operator: "Exists", values: ["b"] },
    { key: "a", operator: "DoesNotExist", values: ["b"] },
    { key: "a", operator: "Gt", values: ["1"] },
    { key: "", operator: "Exists" },
  ];
  assert.deepEqual(checkLabelSelector({ matchExpressions }, "s").map(formatFieldError), [
    "s.matchExpressions[4].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
    "s.matchExpressions[5].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
    "s.matchExpressions[6].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    "s.matchExpressions[7].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    's.matchExpressions[8].operator: Invalid value: "Gt": not a valid selector operator',
    's.matchExpressions[9].key: Invalid value: "": name part must be non-empty',
    "s.matchExpressions[9].key: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
  ]);
});

test("a selector is empty without labels and without expressions", () => {
  const expression = { key: "a", operator: "Exists" };
  const selectors: (LabelSelector | undefined | null)[] = [
    ...[undefined, null, {}, { matchLabels: {}, matchExpressions: [] }],
    ...[{ matchLabels: { a: "b" } }, { matchExpressions: [expression] }],
  ];
  assert.deepEqual(selectors.map(isEmptySelector), [true, true, true, true, false, false]);
});
