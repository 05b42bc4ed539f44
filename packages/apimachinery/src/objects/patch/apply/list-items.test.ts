import assert from "node:assert/strict";
import { test } from "node:test";
import { deducedType, type ListApplyType } from "./apply-type.ts";
import { itemElement } from "./list-items.ts";
import { displayElement } from "./path-element.ts";

const set: ListApplyType = { kind: "list", relation: "set", keys: [], element: deducedType };
const keys = [
  { name: "port", default: undefined },
  { name: "protocol", default: "TCP" },
];
const map: ListApplyType = { kind: "list", relation: "map", keys, element: deducedType };
const noKey = 'associative list with keys has an element that omits key field "port" (and doesn\'t have default value)';

for (const { name, list, item, want } of [
  { name: "a string of a set", list: set, item: "a", want: '[="a"]' },
  { name: "a number of a set", list: set, item: 1, want: "[=1]" },
  { name: "keys", list: map, item: { port: 1, protocol: "UDP", more: 2 }, want: '[port=1,protocol="UDP"]' },
  { name: "a key's default", list: map, item: { port: 1 }, want: '[port=1,protocol="TCP"]' },
]) {
  test(`an item is identified by ${name}`, () => assert.equal(displayElement(itemElement(list, item)), want));
}

const nullOfSet = "associative list without keys has an element that's an explicit null";
const nullOfMap = "associative list with keys may not have a null element";
const noMap = "associative list with keys may not have non-map elements";
for (const { list, item, message } of [
  { list: set, item: null, message: nullOfSet },
  { list: set, item: undefined, message: nullOfSet },
  { list: set, item: ["a"], message: "not supported: associative list with lists as elements" },
  { list: set, item: { a: 1 }, message: "associative list without keys has an element that's a map type" },
  { list: map, item: null, message: nullOfMap },
  { list: map, item: undefined, message: nullOfMap },
  { list: map, item: "a", message: noMap },
  { list: map, item: ["a"], message: noMap },
  { list: map, item: { protocol: "UDP" }, message: noKey },
]) {
  test(`of a ${list.relation}, ${JSON.stringify(item)} is no item`, () =>
    assert.throws(() => itemElement(list, item), { message }));
}
