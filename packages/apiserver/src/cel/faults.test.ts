import assert from "node:assert/strict";
import { test } from "node:test";
import { compile } from "./program.ts";
import { bool, double, dyn, int, listOf, mapOf, objectType, string, type Type, timestamp } from "./types.ts";

const inner = objectType("selfType.inner", (name) => (name === "size" ? int : undefined));
const fields: Readonly<Record<string, Type>> = {
  name: string,
  size: int,
  ratio: double,
  list: listOf(int),
  labels: mapOf(string, string),
  open: dyn,
  time: timestamp,
  inner,
};
const self = objectType("selfType", (name) => (Object.hasOwn(fields, name) ? fields[name] : undefined));

const operands =
  "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

const aMap = "map_type:{key_type:{primitive:STRING} value_type:{primitive:INT64}}";

/** Error texts of ANTLR and cel-go v0.9, without the lines that show the position. */
for (const [expression, ...want] of [
  ["1 +", `1:4: Syntax error: mismatched input '<EOF>' expecting ${operands}`],
  [
    "*@a | b",
    `1:1: Syntax error: extraneous input '*' expecting ${operands}`,
    "1:2: Syntax error: token recognition error at: '@'",
    "1:5: Syntax error: token recognition error at: '| '",
    "1:7: Syntax error: extraneous input 'b' expecting <EOF>",
  ],
  ["*!true", `1:1: Syntax error: extraneous input '*' expecting ${operands}`],
  ["*-self.size > 0", `1:1: Syntax error: extraneous input '*' expecting ${operands}`],
  [
    "self = 'a'",
    "1:6: Syntax error: token recognition error at: '= '",
    "1:8: Syntax error: extraneous input ''a'' expecting <EOF>",
  ],
  ["self.true", "1:6: Syntax error: mismatched input 'true' expecting IDENTIFIER"],
  ["self.", "1:6: Syntax error: missing IDENTIFIER at '<EOF>'"],
  ["self.(1)", "1:6: Syntax error: missing IDENTIFIER at '('"],
  ["[(1) ) 2", "1:6: Syntax error: mismatched input ')' expecting ']'"],
  ['{"a": 1}."a"', "1:10: Syntax error: mismatched input '\"a\"' expecting IDENTIFIER"],
  [
    "in",
    `1:1: Syntax error: mismatched input 'in' expecting ${operands}`,
    `1:3: Syntax error: mismatched input '<EOF>' expecting ${operands}`,
  ],
  [
    "1 + +",
    `1:5: Syntax error: mismatched input '+' expecting ${operands}`,
    `1:6: Syntax error: mismatched input '<EOF>' expecting ${operands}`,
  ],
  [
    "-",
    "1:2: Syntax error: no viable alternative at input '-'",
    `1:2: Syntax error: mismatched input '<EOF>' expecting ${operands}`,
  ],
  [
    "--",
    "1:3: Syntax error: no viable alternative at input '-'",
    `1:3: Syntax error: mismatched input '<EOF>' expecting ${operands}`,
  ],
  ["-!true", "1:2: Syntax error: no viable alternative at input '-!'"],
  ["--!true", "1:3: Syntax error: no viable alternative at input '-!'"],
  ["1 + 2\n3 +", "2:1: Syntax error: mismatched input '3' expecting <EOF>"],
  ["(1", "1:3: Syntax error: missing ')' at '<EOF>'"],
  ["{a}", "1:3: Syntax error: mismatched input '}' expecting ':'"],
  [
    "func{{a}}",
    "1:6: Syntax error: extraneous input '{' expecting {'}', ',', IDENTIFIER}",
    "1:8: Syntax error: mismatched input '}' expecting ':'",
    "1:9: Syntax error: extraneous input '}' expecting <EOF>",
  ],
  ["TestAllTypes(){}", "1:13: expected a qualified name"],
  [
    '"\\xFh"',
    "1:1: Syntax error: token recognition error at: '\"\\xFh'",
    "1:6: Syntax error: token recognition error at: '\"'",
    `1:7: Syntax error: mismatched input '<EOF>' expecting ${operands}`,
  ],
  ["'\\ud800' == ''", "1:1: invalid unicode code point"],
  ["'\\udfff' == ''", "1:1: invalid unicode code point"],
  ["'\\U00110000' == ''", "1:1: invalid unicode code point"],
  ["b'\\u0041' == b''", "1:1: unable to unescape string"],
  ["0xFFFFFFFFFFFFFFFFF", "1:1: invalid int literal"],
  ["0xFFFFFFFFFFFFFFFFFu", "1:1: invalid uint literal"],
  ["1.99e90000009", "1:1: invalid double literal"],
  ["namespace", "1:1: reserved identifier: namespace"],
  ["namespace(1)", "1:1: reserved identifier: namespace"],
  ["1 😁", "1:3: Syntax error: token recognition error at: '😁'"],
  ["has(self)", "1:4: invalid argument to has() macro"],
  ["self.list.all(1, true)", "1:15: argument must be a simple name"],
  ["self.list.map(self.name, true)", "1:14: argument is not an identifier"],
  ["self.list.filter(var, true)", "1:17: argument is not an identifier", "1:18: reserved identifier: var"],
  ["(".repeat(300), "-1:0: expression recursion limit exceeded: 250"],
  [`1${" + 1".repeat(300)}`, "-1:0: expression recursion limit exceeded: 250"],
  [`@${"(".repeat(300)}`, "-1:0: expression recursion limit exceeded: 250", "1:1: Syntax error: token recognition error at: '@'"],
  [" ".repeat(100_001), "-1:0: expression code point size exceeds limit: size: 100001, limit 100000"],

  ["self.nothing", "1:5: undefined field 'nothing'"],
  ["nothing", "1:1: undeclared reference to 'nothing' (in container '')"],
  ["oldSelf.size == 1", "1:1: undeclared reference to 'oldSelf' (in container '')"],
  ["nothing(1)", "1:8: undeclared reference to 'nothing' (in container '')"],
  ["self.name.nothing()", "1:18: undeclared reference to 'nothing' (in container '')"],
  ["self.list.isSorted()", "1:19: undeclared reference to 'isSorted' (in container '')"],
  ["self.name + 1", "1:11: found no matching overload for '_+_' applied to '(string, int)'"],
  ["self.size < 1.5", "1:11: found no matching overload for '_<_' applied to '(int, double)'"],
  ["self.name == null", "1:11: found no matching overload for '_==_' applied to '(string, null)'"],
  ["self.labels == {'a': 1}", "1:13: found no matching overload for '_==_' applied to '(map(string, string), map(string, int))'"],
  ["self.labels == {1: 'a'}", "1:13: found no matching overload for '_==_' applied to '(map(string, string), map(int, string))'"],
  ["self.name.size", "1:10: type 'primitive:STRING' does not support field selection"],
  ["self.list.size", "1:10: type 'list_type:{elem_type:{primitive:INT64}}' does not support field selection"],
  ["self.name.startsWith(1)", "1:21: found no matching overload for 'startsWith' applied to 'string.(int)'"],
  ["size(1)", "1:5: found no matching overload for 'size' applied to '(int)'"],
  ["self == self.inner", "1:6: found no matching overload for '_==_' applied to '(selfType, selfType.inner)'"],
  ["self['name']", "1:5: found no matching overload for '_[_]' applied to '(selfType, string)'"],
  ["self.size ? 1 : 2", "1:11: found no matching overload for '_?_:_' applied to '(int, int, int)'"],
  ["true ? 1 : 'a'", "1:6: found no matching overload for '_?_:_' applied to '(bool, int, string)'"],
  ["self.size.all(x, true)", "1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)"],
  ["self.list.all(x, x)", "1:14: found no matching overload for '_&&_' applied to '(bool, int)'"],
  ["self.labels.all(k, k > 1)", "1:22: found no matching overload for '_>_' applied to '(string, int)'"],
  ["[].map(x, x) + 1", "1:14: found no matching overload for '_+_' applied to '(list(_var0), int)'"],
  ["!self.size", "1:1: found no matching overload for '!_' applied to '(int)'"],
  ["int{}", "1:4: 'int' is not a message type"],
  ["type{}", "1:5: 'type' is not a message type"],
  ["list{}", "1:5: 'list(A)' is not a message type"],
  ["self{}", "1:5: 'selfType' is not a type"],
  ["[{'a': 1}].x", `1:11: type 'list_type:{elem_type:{${aMap}}}' does not support field selection`],
  ["type(1).x", "1:8: type 'type:{primitive:INT64}' does not support field selection"],
  ["type.x", "1:5: type 'type:{type:{}}' does not support field selection"],
  ["[].x", `1:3: type 'list_type:{elem_type:{type_param:"_var0"}}' does not support field selection`],
  ["self.time.x", "1:10: type 'well_known:TIMESTAMP' does not support field selection"],
  ["null.x", "1:5: type 'null:NULL_VALUE' does not support field selection"],
  ["has(self.size.x)", "1:4: type 'primitive:INT64' does not support field selection"],
  ["contains('a', 'b')", "1:9: found no matching overload for 'contains' applied to '(string, string)'"],
  ["'a'.int()", "1:8: found no matching overload for 'int' applied to 'string.()'"],
  ["self.name.size(1)", "1:15: found no matching overload for 'size' applied to 'string.(int)'"],
  ["self.list.exists_one(x, 1)", "1:21: found no matching overload for '_?_:_' applied to '(int, int, int)'"],
  ["1 in self.labels", "1:3: found no matching overload for '@in' applied to '(int, map(string, string))'"],
  ["5.5 % 2.0", "1:5: found no matching overload for '_%_' applied to '(double, double)'"],
  ["-1u", "1:1: found no matching overload for '-_' applied to '(uint)'"],
  ["Thing{a: 1}", "1:6: undeclared reference to 'Thing' (in container '')"],
] as const) {
  test(`refused: ${expression.slice(0, 60).trim()}`, () => {
    const program = compile(expression, new Map([["self", self]]));
    assert.ok("fault" in program);
    const heads = program.fault.split("\n").filter((line) => line.startsWith("ERROR: "));
    assert.deepEqual(
      heads,
      want.map((head) => `ERROR: <input>:${head}`),
    );
  });
}

for (const [expression, want] of [
  ["self.size + int(self.ratio) > 1 && self.inner.size in self.list", bool],
  ["self.open", dyn],
  ["self.open.anything[1].more", dyn],
  ["self.inner == null", bool],
  ["self.time == null", bool],
  ["has(self.labels.key)", bool],
  ["self.labels.map(k, self.labels[k].size())", listOf(int)],
  ["[1, 'a'][0]", dyn],
  ["[]", listOf(dyn)],
  ["{}", mapOf(dyn, dyn)],
  ["{'a': 1, 2: 'b'}", mapOf(dyn, dyn)],
  ["[[], [1]]", listOf(listOf(int))],
  ["[[1], [self.open]]", listOf(listOf(dyn))],
  ["[].map(x, x.y)", listOf(dyn)],
  ["[].map(x, [x, x])", listOf(listOf(dyn))],
  ["[null, self.time]", listOf(timestamp)],
  ["[[]] + [['a']]", listOf(listOf(string))],
  ["{'a': [1]}", mapOf(string, listOf(int))],
  ["true ? self.open : 1", dyn],
] as const) {
  test(`has a type: ${expression}`, () => {
    const program = compile(expression, new Map([["self", self]]));
    assert.deepEqual("fault" in program ? program.fault : program.type, want);
  });
}

test("a fault is shown in its line, below wide characters too", () => {
  const text = "'é😁' == \t1\n|| true";
  const program = compile(text, new Map());
  assert.deepEqual(program, {
    fault: "ERROR: <input>:1:6: found no matching overload for '_==_' applied to '(string, int)'\n | 'é😁' ==  1\n | .．．..^",
  });
  assert.deepEqual(compile("'a' + 'é' é", new Map()), {
    fault: "ERROR: <input>:1:11: Syntax error: token recognition error at: 'é'\n | 'a' + 'é' é\n | .......．..＾",
  });
});

test("a line of 16,384 bytes is shown, a longer one is not", () => {
  for (const [bytes, shown] of [
    [16_384, true],
    [16_385, false],
  ] as const) {
    const program = compile("q".padEnd(bytes), new Map());
    assert.ok("fault" in program);
    assert.equal(program.fault.includes("\n | q"), shown);
  }
});

test("of very many faults the first hundred are reported", () => {
  const program = compile(Array(150).fill("q").join(" && "), new Map());
  assert.ok("fault" in program);
  assert.equal(program.fault.split("ERROR: ").length, 101);
  assert.match(program.fault, /\n50 more errors were truncated$/);
});

test("of many faults in a long line no more are shown than there is use for", () => {
  const program = compile(Array(2000).fill("qqqq").join(" && "), new Map());
  assert.ok("fault" in program);
  assert.ok(program.fault.length < 262_144 + 100, String(program.fault.length));
  const shown = program.fault.split("ERROR: ").length - 1;
  assert.match(program.fault, new RegExp(`\\n${2000 - shown} more errors were truncated$`));
});
