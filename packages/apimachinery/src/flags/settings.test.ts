import assert from "node:assert/strict";
import { test } from "node:test";
import { atLeast, between, durationBetween, fraction, notNegative, oneOf, type Rule } from "./rules.ts";
import {
  absolutePaths,
  fieldsOf,
  fileShape,
  flagsOf,
  ineffectiveFields,
  problemsOf,
  problemsOfGates,
  settingValues,
  unknownFields,
} from "./settings.ts";
import { bool, duration, int32, string, structure } from "./types.ts";

const settings = {
  open: bool({ flag: "open", field: "access.open", default: true, fileDefault: false, help: "" }),
  port: int32({ flag: "port", field: "port", default: 10, must: between(1, 99), help: "" }),
  burst: int32({ flag: "burst", field: "burst", default: 5, zeroIsDefault: "always", must: notNegative, help: "" }),
  periodMs: duration({
    flag: "a-period",
    field: "period",
    default: "10s",
    zeroIsDefault: "inFile",
    refusedWithout: "Periods",
    help: "",
  }),
  policy: string({ field: "access.policy", default: "none", refusedWithout: "Policies", help: "" }),
  path: string({ flag: "path", field: "access.path", isPath: true, help: "" }),
  groups: structure<readonly number[]>({ field: "groups", shape: ["int"], default: [], help: "" }),
  unread: string({ field: "unread", neutral: "Get", wired: false, help: "" }),
};
const shape = fileShape(settings, { "": "Configuration", access: "Access" });
const flagValues = { open: true, port: 10, burst: 5, "a-period": 10_000, path: "" };

function read(flags: Record<string, unknown>, file?: Record<string, unknown>) {
  return settingValues(settings, { flags: { ...flagValues, ...flags }, set: new Set(Object.keys(flags)), file });
}

test("flags have the names that users type, in alphabetical order", () => {
  assert.deepEqual(Object.keys(flagsOf(settings)), ["a-period", "burst", "open", "path", "port"]);
  assert.throws(() => flagsOf({ ...settings, other: settings.port }), { message: "flag --port is declared twice" });
});

for (const { name, flags = {}, file, want } of [
  { name: "the defaults", want: { open: true, port: 10, burst: 5, periodMs: 10_000, policy: "none", groups: [] } },
  { name: "a file's own defaults", file: {}, want: { open: false, port: 10, periodMs: 10_000 } },
  {
    name: "the file",
    file: { access: { open: true, policy: "x" }, port: 11, period: "1m", groups: [1] },
    want: { open: true, policy: "x", port: 11, periodMs: 60_000, groups: [1] },
  },
  { name: "flags over the file", flags: { port: 12, open: true }, file: { port: 11 }, want: { port: 12, open: true } },
  { name: "null as absent", file: { port: null, access: null }, want: { port: 10, open: false } },
  {
    name: "0 in the file as 0, or the default",
    file: { port: 0, burst: 0, period: "0s" },
    want: { port: 0, burst: 5, periodMs: 10_000 },
  },
  { name: "0 of a flag as 0, or the default", flags: { burst: 0, "a-period": 0 }, file: {}, want: { burst: 5, periodMs: 0 } },
] as { name: string; flags?: Record<string, unknown>; file?: Record<string, unknown>; want: object }[]) {
  test(`takes ${name}`, () => assert.partialDeepStrictEqual(read(flags, file), want));
}

test("flag values are converted back to fields", () => {
  const values = { ...read({}), access: "x" };
  assert.deepEqual(fieldsOf(settings, values), {
    access: { open: true, policy: "none", path: "" },
    port: 10,
    burst: 5,
    period: "10s",
    groups: [],
    unread: "",
  });
});

test("feature gates refuse values other than the default", () => {
  const values = { ...read({ "a-period": 1 }), policy: "strict" };
  const off = { enabled: () => false };
  assert.deepEqual(problemsOfGates(settings, values, off), [
    "period (--a-period) {1ms} requires feature gate Periods",
    "access.policy strict requires feature gate Policies",
  ]);
  assert.deepEqual(problemsOfGates(settings, read({}), off), []);
  const on = { enabled: () => true };
  assert.deepEqual(problemsOfGates(settings, values, on), []);
});

test("broken rules are reported kind by kind, with both names", () => {
  const values = read({ port: 100, burst: -1 });
  assert.deepEqual(problemsOf(settings, values, "between"), ["port (--port) 100 must be between 1 and 99, inclusive"]);
  assert.deepEqual(problemsOf(settings, values, "notNegative"), ["burst (--burst) -1 must not be a negative number"]);
  assert.deepEqual(problemsOf(settings, values, "oneOf"), []);
});

test("fields have the type of the flag, also inside of objects, and others are unknown", () => {
  assert.deepEqual(unknownFields(shape, { kind: "K", access: { open: true, shut: 1 }, port: 1, more: 1 }), [
    "access.shut",
    "more",
  ]);
  assert.throws(() => unknownFields(shape, { access: { open: 1 } }), {
    message: "json: cannot unmarshal number into Go struct field Access.access.open of type bool",
  });
  assert.throws(() => fileShape({ ...settings, other: settings.port }, { "": "C", access: "A" }), {
    message: "field port is declared twice",
  });
});

test("relative paths are resolved against the file's folder", () => {
  assert.deepEqual(absolutePaths(settings, { access: { path: "a", open: true } }, "/etc/x"), {
    access: { path: "/etc/x/a", open: true },
  });
  for (const file of [{}, { access: null }, { access: { path: "" } }, { access: { path: "/a" } }])
    assert.deepEqual(absolutePaths(settings, file, "/etc/x"), file);
});

test("a field without an effect is reported, unless its value is what happens anyway", () => {
  assert.deepEqual(ineffectiveFields(settings, { unread: "Watch", port: 1 }), ["unread"]);
  assert.deepEqual(ineffectiveFields(settings, { unread: "Get" }), []);
});

const broken = <T>(rule: Rule<T>, values: readonly T[], names = { flag: "f", field: "x" }) =>
  values.map((value) => rule.problem(value, names));

test("limits include their ends", () => {
  assert.deepEqual(broken(between(-1, 2), [-1, 2]), [undefined, undefined]);
  assert.deepEqual(broken(between(-1, 2), [-2, Number.NaN]), [
    "x (--f) -2 must be between -1 and 2, inclusive",
    "x (--f) NaN must be between -1 and 2, inclusive",
  ]);
  assert.deepEqual(broken(notNegative, [0]), [undefined]);
  assert.deepEqual(broken(atLeast(2), [1, 2]), ["x must be >= 2", undefined]);
  assert.deepEqual(broken(durationBetween(1, 1000, ["1ms", "1sec"]), [0, 1, 1000, 2000]), [
    "x (--f) {0s} must be between 1ms and 1sec, inclusive",
    undefined,
    undefined,
    "x (--f) {2s} must be between 1ms and 1sec, inclusive",
  ]);
  assert.deepEqual(broken(fraction, [0, 0.1, 1, 1.1]), [
    "x (--f) 0 must be greater than 0 and less than or equal to 1.0",
    undefined,
    undefined,
    "x (--f) 1.1 must be greater than 0 and less than or equal to 1.0",
  ]);
  assert.deepEqual(
    broken(
      oneOf(["a"], (value, name) => `${name}: ${value}`),
      ["a", "b"],
    ),
    [undefined, 'x (--f): "b"'],
  );
});
