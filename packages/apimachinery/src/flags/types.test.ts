import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bool,
  duration,
  type Flag,
  float,
  int,
  int32,
  ip,
  level,
  mapStringBool,
  mapStringString,
  multiMap,
  namedCertKeys,
  parseBool,
  portRange,
  quantity,
  string,
  stringSlice,
  stringToString,
  structure,
  text,
  uint,
} from "./types.ts";

const help = "";
const below = mapStringString({ help, separator: "<" });

for (const [typeName, flag, fallback, shown] of [
  ["string", string({ help }), "", ""],
  ["strings", stringSlice({ help }), [], "[]"],
  ["namedCertKey", namedCertKeys({ help }), [], "[]"],
  ["", bool({ help }), false, "false"],
  ["int", int({ help }), 0, "0"],
  ["int32", int32({ help }), 0, "0"],
  ["uint", uint({ help }), 0, "0"],
  ["Level", level({ help }), 0, "0"],
  ["float", float({ help }), 0, "0"],
  ["duration", duration({ help }), 0, "0s"],
  ["ip", ip({ help }), "", "<nil>"],
  ["mapStringString", mapStringString({ help }), {}, ""],
  ["stringToString", stringToString({ help }), {}, "[]"],
  ["mapStringBool", mapStringBool({ help }), {}, ""],
  ["colonSeparatedMultimapStringString", multiMap({ help }), [], ""],
  ["portRange", portRange({ help }), { first: 0, last: 0 }, "0-0"],
  ["quantity", quantity({ help }), "0", "0"],
  ["colour", text("colour", { help }), "", ""],
] as [string, Flag<unknown>, unknown, string][]) {
  test(`a flag of type ${typeName || "bool"} has a default, shown as ${JSON.stringify(shown)}`, () => {
    assert.deepEqual([flag.typeName, flag.default, flag.format(flag.default)], [typeName, fallback, shown]);
    assert.equal(flag.impliedText, typeName === "" ? "true" : undefined);
  });
}

for (const [flag, written, want, shown] of [
  [string({ help }), " a ", " a ", " a "],
  [stringSlice({ help }), 'a,"b,c",', ["a", "b,c", ""], "[a,b,c,]"],
  [bool({ help, default: true }), "F", false, "false"],
  [int({ help }), "-0x10", -16, "-16"],
  [int32({ help }), "-2147483648", -2_147_483_648, "-2147483648"],
  [uint({ help }), "4294967296", 4_294_967_296, "4294967296"],
  [level({ help }), "10", 10, "10"],
  [float({ help }), "+1.50", 1.5, "1.5"],
  [duration({ help }), "90s", 90_000, "1m30s"],
  [duration({ help }), "0", 0, "0s"],
  [ip({ help }), "10.0.0.1", "10.0.0.1", "10.0.0.1"],
  [mapStringString({ help }), " b = 1 = 2 ,a=,", { b: "1 = 2", a: "" }, "a=,b=1 = 2"],
  [mapStringString({ help, bareKeys: true }), "b,a=1", { b: "", a: "1" }, "a=1,b="],
  [below, "memory.available<100Mi,,x<=", { "memory.available": "100Mi", x: "=" }, "memory.available<100Mi,x<="],
  [stringToString({ help }), 'a="b"', { a: '"b' }, '[a="b]'],
  [stringToString({ help }), "a=b,c=d", { a: "b", c: "d" }, "[a=b,c=d]"],
  [mapStringBool({ help }), ",b=true, a =0,", { b: true, a: false }, "a=false,b=true"],
  [multiMap({ help }), "b:1,,a: x : y ,", [["b", "1"], ["a", "x : y"]], "b:1,a:x : y"], // biome-ignore format: a row
  [portRange({ help }), "0-65535", { first: 0, last: 65_535 }, "0-65535"],
  [portRange({ help }), "10+0", { first: 10, last: 10 }, "10-10"],
  [quantity({ help }), "1.5Gi", "1.5Gi", "1.5Gi"],
] as [Flag<unknown>, string, unknown, string][]) {
  test(`${flag.typeName || "bool"} ${JSON.stringify(written)} is read, and shown as ${JSON.stringify(shown)}`, () => {
    const value = flag.parse(written, undefined);
    assert.deepEqual([value, flag.format(value)], [want, shown]);
  });
}

for (const [flag, written, message] of [
  [bool({ help }), "yes", 'strconv.ParseBool: parsing "yes": invalid syntax'],
  [int32({ help }), "2147483648", 'strconv.ParseInt: parsing "2147483648": value out of range'],
  [uint({ help }), "-1", 'strconv.ParseUint: parsing "-1": invalid syntax'],
  [level({ help }), "0x1", 'strconv.ParseInt: parsing "0x1": invalid syntax'],
  [float({ help }), "NaN", 'strconv.ParseFloat: parsing "NaN": invalid syntax'],
  [float({ help }), ".", 'strconv.ParseFloat: parsing ".": invalid syntax'],
  [duration({ help }), "5", 'time: invalid duration "5"'],
  [ip({ help }), "10.0.0", 'failed to parse IP: "10.0.0"'],
  [mapStringString({ help }), "a=1,b", "malformed pair, expect string=string"],
  [below, "a=1", "malformed pair, expect string<string"],
  [stringToString({ help }), "a=b,c=d,e", "e must be formatted as key=value"],
  [mapStringBool({ help }), "a=maybe", 'invalid value of a=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax'],
  [mapStringBool({ help }), "a=true,b", "missing bool value for b"],
  [multiMap({ help }), "a:1,b", "malformed pair, expect string:string"],
  [portRange({ help }), "65536", "the port range cannot be greater than 65535: 65536"],
  [portRange({ help }), "1-65536", "the port range cannot be greater than 65535: 1-65536"],
  [portRange({ help }), "-1", "unable to parse port range: -1"],
  [portRange({ help }), "1-2-3", "unable to parse port range: 1-2-3"],
  [quantity({ help }), "much", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"],
  [structure({ help, field: "profiles", shape: ["string"], default: [] }), "x", "profiles is no flag"],
] as [Flag<unknown>, string, string][]) {
  test(`${flag.typeName || "bool"} ${JSON.stringify(written)} is refused`, () =>
    assert.throws(() => flag.parse(written, undefined), { message }));
}

test("a repeated flag adds to lists and maps, and replaces other values", () => {
  assert.deepEqual(stringSlice({ help }).parse("b", ["a"]), ["a", "b"]);
  assert.deepEqual(namedCertKeys({ help }).parse("b,c", ["a"]), ["a", "b,c"]);
  assert.deepEqual(mapStringString({ help }).parse("b=2,a=3", { a: "1" }), { a: "3", b: "2" });
  assert.deepEqual(mapStringBool({ help }).parse("b=false", { a: true }), { a: true, b: false });
  assert.deepEqual(stringToString({ help }).parse("b=2", { a: "1" }), { a: "1", b: "2" });
  assert.equal(int({ help }).parse("2", 1), 2);
  assert.deepEqual(portRange({ help }).parse("5", { first: 1, last: 2 }), { first: 5, last: 5 });
});

test("booleans are written as in Go", () => {
  for (const word of ["1", "t", "T", "TRUE", "true", "True"]) assert.equal(parseBool(word), true);
  for (const word of ["0", "f", "F", "FALSE", "false", "False"]) assert.equal(parseBool(word), false);
  for (const word of ["", "tRUE", "y", "no", "2"]) assert.throws(() => parseBool(word), /ParseBool/);
});
