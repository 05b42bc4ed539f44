import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { Budget, BudgetExceeded } from "./budget.ts";
import { compile } from "./program.ts";
import { dyn, int, listOf, mapOf, string, type Type } from "./types.ts";
import { Failure, type Value } from "./values.ts";

/** Results and errors according to the language definition and cel-go v0.9. */
const variables: ReadonlyMap<string, readonly [Type, Value]> = new Map<string, readonly [Type, Value]>([
  ["i", [int, 3n]],
  ["s", [string, "héllo 😁"]],
  ["any", [dyn, 3n]],
]);

function run(text: string, steps = 100_000): Value {
  const program = compile(text, new Map([...variables].map(([name, [type]]) => [name, type])));
  if ("fault" in program) throw new Error(program.fault);
  return atOnce(program.evaluate(new Map([...variables].map(([name, [, value]]) => [name, value])), new Budget(steps)));
}

const holds: Readonly<Record<string, readonly string[]>> = {
  "lists made from the same one": [
    "[[1]].map(l, [l + [2], l + [3]]) == [[[1, 2], [1, 3]]]",
    "[[1, 2]].all(l, (l + [3]).size() == 3 && (l + [4, 5]).size() == 4 && l == [1, 2] && l + [6] == [1, 2, 6])",
  ],
  numbers: [
    "1 + 2 * 3 - 4 / 2 == 5",
    "7 / 2 == 3 && -7 / 2 == -3 && 7 % -2 == 1 && -7 % 2 == -1",
    "0x10 == 16 && 0xFFu == 255u",
    "1e3 == 1000.0 && .5 == 0.5 && 2.5e-1 == 0.25",
    "-9223372036854775808 < 9223372036854775807",
    "18446744073709551615u > 1u",
    "--3 == 3 && ---3 == -3 && - 3 == -3",
    "1.0 / 0.0 > 1e308",
    "double('NaN') != double('NaN')",
    "i - 4 == -1",
    "2.5 * 2.0 == 5.0 && -1.5 == 0.0 - 1.5 && -dyn(1.5) == -1.5 && -dyn(duration('1s')) == duration('-1s')",
    "5u % 2u == 1u && 5u / 2u == 2u && 3u * 2u == 6u",
  ],
  conversions: [
    "int('-42') == -42 && int(3.9) == 3 && int(-3.9) == -3 && int(7u) == 7",
    "uint(7) == 7u && uint('8') == 8u && uint(2.9) == 2u && uint(0.0) == 0u && uint(-0.0) == 0u",
    "double(2) == 2.0 && double('1e-3') == 0.001",
    "double('-Inf') < -1e308 && double('+Infinity') > 1e308 && double('inf') == double('INFINITY')",
    "string(1) == '1' && string(2u) == '2' && string(1.5) == '1.5' && string(1e6) == '1e+06' && string(true) == 'true'",
    "bool('true') && bool('T') && !bool('0')",
    "['1', 't', 'T', 'true', 'TRUE', 'True'].all(b, bool(b)) && ['0', 'f', 'F', 'false', 'FALSE', 'False'].all(b, !bool(b))",
    "string(-0.0) == '-0' && string(0.0) == '0' && string(b'\\357\\273\\277a').size() == 2",
    "string(b'abc') == 'abc' && bytes('é') == b'\\303\\251'",
    "string(timestamp('2020-02-29T12:00:00.5+01:00')) == '2020-02-29T12:00:00.5+01:00'",
    "int(timestamp('1970-01-01T00:01:00Z')) == 60 && timestamp(60) == timestamp('1970-01-01T00:01:00Z')",
    "string(duration('1h30m')) == '5400s' && string(duration('-1.5s')) == '-1.5s'",
    "int(duration('1s')) == 1000000000 && int(duration('-1ns')) == -1 && double(3u) == 3.0",
    "string(dyn(type(1))) == 'int' && string(dyn(null)) == 'null' && .int('5') == 5",
    "type(1) != type('a') && type(1) == int && [type(1), type('a')].size() == 2",
    "type(1) == int && type(1u) == uint && type(1.0) == double && type('') == string && type(b'') == bytes",
    "type([]) == list && type({}) == map && type(null) == null_type && type(type(1)) == type && type(true) == bool",
    "type(timestamp(0)) == google.protobuf.Timestamp && type(duration('0')) == google.protobuf.Duration",
  ],
  "the ends of what numbers can be": [
    "1u - 1u == 0u && 0u * 5u == 0u && 18446744073709551614u + 1u == 18446744073709551615u",
    "9223372036854775806 + 1 == 9223372036854775807 && -9223372036854775807 - 1 == -9223372036854775808",
    "int('9223372036854775807') == 9223372036854775807 && int('-9223372036854775808') == -9223372036854775808 && int('+7') == 7",
    "int(9223372036854774784.0) == 9223372036854774784 && int(-9223372036854774784.0) == -9223372036854774784",
    "uint('18446744073709551615') == 18446744073709551615u && uint('0') == 0u && uint(0) == 0u && uint(0.9) == 0u",
    "int(9223372036854775807u) == 9223372036854775807 && int(0u) == 0",
    "timestamp('9999-12-31T23:59:59Z') == timestamp(253402300799) && timestamp('0001-01-01T00:00:00Z') == timestamp(-62135596800)",
    "duration('2562047h47m16.854775807s') > duration('0') && duration('-2562047h47m16.854775808s') < duration('0')",
  ],
  texts: [
    String.raw`'\x41\u00e9\U0001F601\101' == "Aé😁A"`,
    String.raw`'\a\b\f\n\r\t\v\\\'\"\?' == "\x07\x08\x0c\x0a\x0d\x09\x0b\x5c\x27\x22\x3f"`,
    String.raw`r'\d+' == '\\d+' && R"a\b".size() == 3`,
    "'''it's\na''' == 'it\\'s\\na' && \"\"\"a\"b\"\"\".size() == 3",
    "'a' + 'b' == 'ab' && b'a' + b'b' == b'ab'",
    "s.size() == 7 && size('😁') == 1 && size(b'\\303\\251') == 2",
    "s.contains('éll') && s.startsWith('hé') && s.endsWith('😁') && ''.contains('')",
    "'abc'.matches('^a.c$') && 'xabcx'.matches('b') && !'abc'.matches('^b')",
    "'a' < 'b' && 'ab' < 'b' && '😁' > '\\uffff' && b'a' < b'b' && false < true",
    "s.charAt(1) == 'é' && s.charAt(7) == '' && s.indexOf('l') == 2 && s.indexOf('l', 3) == 3 && s.indexOf('x') == -1",
    "s.lastIndexOf('l') == 3 && s.lastIndexOf('l', 2) == 2 && s.lastIndexOf('') == 7 && 'aaa'.lastIndexOf('aa') == 1",
    "s.substring(6) == '😁' && s.substring(0, 2) == 'hé' && s.substring(7) == ''",
    "'hello'.replace('l', 'L') == 'heLLo' && 'hello'.replace('l', 'L', 1) == 'heLlo' && 'ab'.replace('', '-') == '-a-b-'",
    "'hello'.replace('', '_', 2) == '_h_ello' && 'hello'.replace('l', 'L', 0) == 'hello'",
    "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'a,b'.split(',', 0) == []",
    "'ab'.split('') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b' && ['a', 'b'].join() == 'ab' && [].join() == ''",
    "'abc'.charAt(3) == '' && 'abc'.indexOf('c', 2) == 2 && 'abc'.indexOf('') == 0 && 'abc'.indexOf('', 2) == 2",
    "'abc'.lastIndexOf('a', 0) == 0 && 'abc'.lastIndexOf('b', 0) == -1 && 'abc'.lastIndexOf('', 1) == 1 && 'abca'.lastIndexOf('a', 3) == 3",
    "'abc'.substring(3) == '' && 'abc'.substring(3, 3) == '' && 'abc'.substring(0, 3) == 'abc' && 'abc'.substring(1, 1) == ''",
    "'a,b,c'.split(',', -1) == ['a', 'b', 'c'] && 'a,b,c'.split(',', 1) == ['a,b,c'] && 'a,b'.split(',', 9) == ['a', 'b']",
    "'aaa'.replace('a', 'b', -1) == 'bbb' && 'aaa'.replace('a', 'b', 3) == 'bbb' && 'aaa'.replace('a', 'b', 9) == 'bbb'",
    "'ab'.replace('', '-', 3) == '-a-b-' && 'ab'.replace('', '-', 1) == '-ab' && ''.replace('', '-') == '-'",
    "' \\t a b \\n'.trim() == 'a b' && 'AbÉ'.lowerAscii() == 'abÉ' && 'aBé'.upperAscii() == 'ABé'",
  ],
  "what is at the edge of a text": [
    "size('\\U0010ffff') == 1 && size('\\ud7ff\\ue000') == 2",
    "'''''' == '' && \"\"\"\"\"\" == '' && size('''a\r\nb\rc''') == 5 && '''a\r\nb\rc''' == 'a\\nb\\nc'",
    "'\\u0085\\u00a0\\u2003a\\u3000'.trim() == 'a' && '\\u200ba'.trim() != 'a'",
    "['a', 'b'].all(p, p.matches('^' + p + '$')) && ['a', 'b'].filter(p, 'a'.matches(p)) == ['a']",
  ],
  "lists and maps": [
    "[1, 2] + [3] == [1, 2, 3] && [1, 2][1] == 2 && size([1, 2]) == 2 && [] == []",
    "2 in [1, 2] && !(3 in [1, 2]) && 'a' in {'a': 1} && !('b' in {'a': 1})",
    "{1: 'int', 1u: 'uint'}[1u] == 'uint' && {1: 'int', 1u: 'uint'}[1] == 'int' && {'a': 1, 'a': 2}['a'] == 2",
    "{'a': 1, 'b': 2} != {'a': 1, 'c': 2} && {'a': 1} != {'a': 1, 'b': 2}",
    "[1, 2] + [] == [1, 2] && [] + [1] == [1] && [[1]].all(l, (l + []).size() == 1 && (l + [2]).size() == 2 && l == [1])",
    "{'a': 1, 'b': 2}.b == 2 && {'a': 1}['a'] == 1 && {1: 'x'}[1] == 'x' && {true: 1}[true] == 1 && {1u: 2}[1u] == 2",
    "{'a': 1, 'b': [2]} == {'b': [2], 'a': 1} && {'a': 1} != {'a': 2} && {'a': 1} != {'b': 1}",
    "[1] != [1, 2] && [1, 2] != [1] && !(dyn([1]) in {'a': 1}) && .size([1]) == 1",
    "[{'a': 1}].map(x, x)[0].a == 1 && [1].map(x, true ? x : 2) == [1]",
    "[[1], [2]] != [[1], [3]] && [1,] == [1] && {'a': 1,} == {'a': 1}",
    "has({'a': 1}.a) && !has({'a': 1}.b)",
    "[1, 'a', null].size() == 3",
  ],
  macros: [
    "[1, 2, 3].all(x, x > 0) && ![1, 2, 3].all(x, x > 1) && [].all(x, false)",
    "[1, 2, 3].exists(x, x == 2) && ![].exists(x, true)",
    "[1, 2, 3].exists_one(x, x > 2) && ![1, 2, 3].exists_one(x, x > 1) && ![].exists_one(x, true)",
    "[1, 2, 3].map(x, x * x) == [1, 4, 9] && [1, 2, 3].map(x, x > 1, x * 10) == [20, 30]",
    "[1, 2, 3].filter(x, x != 2) == [1, 3] && {'a': 1, 'b': 2}.filter(k, k > 'a') == ['b']",
    "{'a': 1}.all(k, {'a': 1}[k] == 1) && {1: 2}.map(k, k) == [1]",
    "[[1, 2], [3]].all(l, l.exists(x, x % 2 == 1)) && [1, 2].map(x, [3].map(x, x)) == [[3], [3]]",
    "[1].all(i, i == 1 && .i == 3)",
    "has(dyn(['a']).a) && !has(dyn(['b']).a)",
    "has([{'a': 1}][0].a) && [[{'a': 1}]].all(l, has(l[0].a) && !has(l[0].b))",
    "[1, 2].map(x, x).filter(y, y > 1) + [1] == [2, 1]",
  ],
  "one operand decides": [
    "true || 1 / 0 > 0",
    "1 / 0 > 0 || true",
    "!(false && 1 / 0 > 0) && !(1 / 0 > 0 && false)",
    "true ? true : 1 / 0 > 0",
    "[0, 1].exists(x, 1 / x > 0) && ![0, 2].all(x, 4 / x > 4)",
    "any == 3 || any == 'x'",
    "any == 'x' || any == 3",
    "[1, 'a'].exists(x, x == 'a') && 'a' in [1, 'a']",
  ],
  times: [
    "string(timestamp('1969-12-31T23:59:59.5Z')) == '1969-12-31T23:59:59.5Z'",
    "timestamp(0) - duration('0.25s') == timestamp('1969-12-31T23:59:59.75Z') && string(duration('-0.5s')) == '-0.5s'",
    "timestamp('1969-12-31T23:59:59.5Z').getMilliseconds() == 500 && timestamp('1969-12-31T23:59:59.5Z').getSeconds() == 59",
    "timestamp('2020-01-01T00:00:00Z') + duration('24h') == timestamp('2020-01-02T00:00:00Z')",
    "timestamp('2020-01-02T00:00:00Z') - timestamp('2020-01-01T00:00:00Z') == duration('1440m')",
    "duration('1\\u00b5s') == duration('1us') && duration('1\\u03bcs') == duration('1us') && duration('0') == duration('-0s')",
    "duration('0.00000000001h') == duration('36ns') && duration('00000000000000000000001s') == duration('1s')",
    "duration('1h') > duration('59m') && duration('1us') == duration('1000ns') && duration('1.5h') == duration('90m')",
    "timestamp('2020-01-01T00:00:00.1Z') != timestamp('2020-01-01T00:00:00.2Z') && duration('1ns') != duration('2ns')",
    "timestamp('2020-01-01T01:00:00+01:00') == timestamp('2020-01-01T00:00:00Z')",
    "timestamp('2020-02-29T23:59:58.987Z').getFullYear() == 2020 && timestamp('2020-02-29T23:59:58.987Z').getMonth() == 1",
    "timestamp('2020-02-29T23:59:58.987Z').getDate() == 29 && timestamp('2020-02-29T23:59:58.987Z').getDayOfMonth() == 28",
    "timestamp('2020-02-29T23:59:58.987Z').getDayOfWeek() == 6 && timestamp('2020-02-29T23:59:58.987Z').getDayOfYear() == 59",
    "timestamp('2020-02-29T23:59:58.987Z').getSeconds() == 58 && timestamp('2020-02-29T23:59:58.987Z').getMilliseconds() == 987",
    "timestamp('2020-07-01T00:30:00Z').getHours('Europe/Berlin') == 2 && timestamp('2020-07-01T00:30:00Z').getDate('-01:00') == 30",
    "timestamp('2020-07-01T00:30:00Z').getHours('America/New_York') == 20 && timestamp('2020-07-01T00:30:00Z').getMinutes('Asia/Kolkata') == 0",
    "string(timestamp('2020-02-29T12:00:00-01:30')) == '2020-02-29T12:00:00-01:30'",
    "[1].all(google, google.protobuf.Timestamp == type(timestamp(0)))",
    "timestamp('2020-07-01T00:30:00Z').getMinutes('-01:15') == 15 && timestamp('2020-07-01T00:30:00Z').getMinutes('+01:15') == 45",
    "duration('1h1m1.5s').getMinutes() == 61 && duration('1.5s').getMilliseconds() == 1500 && duration('-90m').getHours() == -1",
  ],
};

for (const [about, expressions] of Object.entries(holds)) {
  for (const expression of expressions) {
    test(`${about}: ${expression}`, () => assert.equal(run(expression), true));
  }
}

for (const [expression, want] of [
  ["9223372036854775807 + 1", "integer overflow"],
  ["-9223372036854775808 - 1", "integer overflow"],
  ["-(-9223372036854775808)", "integer overflow"],
  ["-9223372036854775808 / -1", "integer overflow"],
  ["-9223372036854775808 % -1", "integer overflow"],
  ["5000000000 * 5000000000", "integer overflow"],
  ["0u - 1u", "unsigned integer overflow"],
  ["uint(-1)", "unsigned integer overflow"],
  ["int(18446744073709551615u)", "integer overflow"],
  ["int(1e19)", "integer overflow"],
  ["i / 0", "division by zero"],
  ["i % 0", "modulus by zero"],
  ["5u / 0u", "division by zero"],
  ["5u % 0u", "modulus by zero"],
  ["-dyn('a')", "no such overload: -_"],
  ["-dyn(true)", "no such overload"],
  ["!dyn(1)", "no such overload: !_"],
  ["duration(5)", "type conversion error from 'int' to 'google.protobuf.Duration'"],
  ["[1][dyn(0u)]", "unsupported index type 'uint' in list"],
  ["{1u: 1}[2u]", "no such key: 2"],
  ["{1: 1}[dyn('a')]", "no such key: a"],
  ["[{'a': 1}].map(x, x)[0].b", "no such key: b"],
  ["dyn(1)[0]", "no such overload"],
  ["dyn(1) in dyn(2)", "no such overload"],
  ["'a'.matches(dyn(1))", "no such overload"],
  ["dyn(1).matches('a')", "no such overload: matches"],
  ["timestamp(0).getHours(dyn(1))", "no such overload"],
  ["'a'.indexOf(dyn(1))", "no such overload"],
  ["'a'.replace('a', dyn(1))", "no such overload"],
  ["'a'.substring(dyn('a'))", "no such overload"],
  ["dyn(1).join()", "no such overload"],
  ["['a'].join(dyn(1))", "no such overload"],
  ["[1] == dyn(1)", "no such overload"],
  ["{'a': 1} == dyn(1)", "no such overload"],
  ["1 == dyn([1])", "no such overload"],
  ["1 == dyn({})", "no such overload"],
  ["1 != dyn('a')", "no such overload"],
  ["[1].map(x, dyn(x))[0] ? 1 : 2", "no such overload"],
  ["[0].map(x, 1 / x)[0] > 0 ? 1 : 2", "division by zero"],
  ["[0].exists(x, 1 / x > 0 ? true : true)", "division by zero"],
  ["int('x')", "type conversion error from 'string' to 'int'"],
  ["duration('1x')", "type conversion error from 'string' to 'google.protobuf.Duration'"],
  ["timestamp('2021-02-29T00:00:00Z')", "type conversion error from 'string' to 'google.protobuf.Timestamp'"],
  ["timestamp('9999-12-31T23:59:59Z') + duration('1s')", "timestamp overflow"],
  ["[1][1]", "index '1' out of range in list size '1'"],
  ["[1][-1]", "index '-1' out of range in list size '1'"],
  ["{'a': 1}.b", "no such key: b"],
  ["{1: 1}[2]", "no such key: 2"],
  ["dyn(1) + 'a'", "no such overload"],
  ["dyn(true) + 1", "no such overload: _+_"],
  ["dyn(1).size()", "no such overload: size"],
  ["dyn(1).contains('a')", "no such overload: contains"],
  ["any.charAt(1)", "no such overload"],
  ["dyn(1) == 'a'", "no such overload"],
  ["dyn([1]) < 1", "no such overload: _<_"],
  ["dyn(1) ? 1 : 2", "no such overload"],
  ["dyn(1) && true", "no such overload"],
  ["1 / 0 > 0 && true", "division by zero"],
  ["[1, 0].all(x, 1 / x > 0)", "division by zero"],
  ["any.field", "no such overload"],
  ["has(any.field)", "invalid type for field selection."],
  ["any.all(x, true)", "got 'types.Int', expected iterable type"],
  ["dyn(null).all(x, true)", "got 'types.Null', expected iterable type"],
  ["dyn(duration('1s')).all(x, true)", "got 'types.Duration', expected iterable type"],
  ["'abc'.matches('a(')", "error parsing regexp: missing closing ): `a(`"],
  ["'abc'.charAt(4)", "index out of range: 4"],
  ["'abc'.charAt(-1)", "index out of range: -1"],
  ["'abc'.substring(4)", "index out of range: 4"],
  ["'abc'.substring(-1)", "index out of range: -1"],
  ["'abc'.substring(0, 4)", "index out of range: 4"],
  ["'abc'.indexOf('a', -1)", "index out of range: -1"],
  ["'abc'.lastIndexOf('a', 3)", "index out of range: 3"],
  ["'abc'.lastIndexOf('a', -1)", "index out of range: -1"],
  ["''.indexOf('a')", "index out of range: 0"],
  ["int('9223372036854775808')", "type conversion error from 'string' to 'int'"],
  ["int('-9223372036854775809')", "type conversion error from 'string' to 'int'"],
  ["uint('18446744073709551616')", "type conversion error from 'string' to 'uint'"],
  ["uint('-1')", "type conversion error from 'string' to 'uint'"],
  ["double('x')", "type conversion error from 'string' to 'double'"],
  ["double('1e999')", "type conversion error from 'string' to 'double'"],
  ["bool('yes')", "type conversion error from 'string' to 'bool'"],
  ["int(9223372036854775808u)", "integer overflow"],
  ["int(9223372036854775807.0)", "integer overflow"],
  ["int(-9223372036854775808.0)", "integer overflow"],
  ["uint(-0.5)", "unsigned integer overflow"],
  ["uint(18446744073709551615.0)", "unsigned integer overflow"],
  ["timestamp(253402300800)", "timestamp overflow"],
  ["timestamp(-62135596801)", "timestamp overflow"],
  ["timestamp('0001-01-01T00:00:00Z') - duration('1ns')", "timestamp overflow"],
  ["duration('2562047h47m16.854775808s')", "type conversion error from 'string' to 'google.protobuf.Duration'"],
  ["duration('2562047h47m16.854775807s') + duration('1ns')", "integer overflow"],
  ["duration('-2562047h47m16.854775808s') - duration('1ns')", "integer overflow"],
  ["double('+nan')", "type conversion error from 'string' to 'double'"],
  ["double('1e999')", "type conversion error from 'string' to 'double'"],
  ["dyn({1.5: 1}).size() == 1", "unsupported key type: double"],
  ["dyn(duration('1s')).getHours('UTC')", "no such overload"],
  ["dyn(duration('1s')).getFullYear()", "no such overload"],
  ["dyn(1).getFullYear()", "no such overload: getFullYear"],
  ["dyn('a') in {1: 1 / 0}", "division by zero"],
  ["dyn([1])['a']", "unsupported index type 'string' in list"],
  ["1 / 0 > 0 && 1 % 0 > 0", "division by zero"],
  ["dyn(1) == 1 / 0", "division by zero"],
  ["[1 / 0, 1 % 0] == [1, 1]", "division by zero"],
  ["dyn([1]).join()", "no such overload"],
  ["dyn(['a', 1]).join(',')", "no such overload"],
  ["'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"],
  ["'abc'.indexOf('a', 3)", "index out of range: 3"],
  ["timestamp(0).getHours('Nowhere/Town')", "unknown time zone Nowhere/Town"],
  ["timestamp(0).getHours('+01')", "unknown time zone +01"],
  ["string(b'\\377')", "invalid UTF-8 in bytes, cannot convert to string"],
] as const) {
  test(`fails: ${expression}`, () => {
    const result = run(expression);
    assert.ok(result instanceof Failure, `${expression} is ${String(result)}`);
    assert.equal(result.message, want);
  });
}

for (const { name, expression } of [
  {
    name: "folds within folds",
    expression: "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, a+b+c >= 0)))",
  },
  { name: "texts that double", expression: `['aaaaaaaa']${".map(t, t + t)".repeat(20)}.size() > 0` },
  { name: "lists that double", expression: `[[1]]${".map(l, l + l)".repeat(20)}.size() > 0` },
  {
    name: "equality of what is there many times",
    expression: `[1]${".map(l, [l, l])".repeat(12)} == [1]${".map(l, [l, l])".repeat(12)}`,
  },
  { name: "a pattern that is much when written out", expression: "'aaaaaaaaaaaaaaaaaaaa'.matches('((a{100}){10})$')" },
  {
    name: "texts between all characters",
    expression:
      "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'.replace('', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa').replace('', 'aaaaaaaaaaaaaaaa') == ''",
  },
]) {
  test(`costs more than there is: ${name}`, () => assert.throws(() => run(expression, 1000), BudgetExceeded));
}

test("no operator gets over the end of the budget", () => {
  assert.throws(
    () => run("true || [1, 2, 3, 4, 5].all(x, x > 0) || true ? [1, 2, 3, 4, 5].all(x, x > 0) : false", 10),
    BudgetExceeded,
  );
});

test("types that grow beyond all use are refused", () => {
  const program = compile(`[1]${".map(x, {'k': {'l': [[[[x]]]], 'm': [[[[x]]]]}})".repeat(60)}.size() > 0`, new Map());
  assert.ok(!("fault" in program));
  const keyed = compile(
    `[1]${".map(x, {x: x}).map(x, [x])".repeat(30)}.size() > 0`,
    new Map([["m", mapOf(string, listOf(int))]]),
  );
  assert.deepEqual(keyed, { fault: "ERROR: <input>:-1:0: the types of the expression are too large" });
});
