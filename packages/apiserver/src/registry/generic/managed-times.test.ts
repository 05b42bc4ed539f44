import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject, ManagedFieldsEntry } from "@coxswain/apimachinery/objects/meta/types";
import { keepTimesWhenUnchanged } from "./managed-times.ts";

const entry = (manager: string, second: number, fields: object = { "f:data": {} }): ManagedFieldsEntry =>
  ({
    manager,
    operation: "Apply",
    apiVersion: "v1",
    time: `2021-12-07T00:00:0${second}Z`,
    fieldsType: "FieldsV1",
    fieldsV1: fields,
  }) as ManagedFieldsEntry;

const object = (value: string, ...managedFields: ManagedFieldsEntry[]): KubeObject =>
  ({ metadata: { name: "a", managedFields }, data: { key: value } }) as unknown as KubeObject;

const current = object("1", entry("a", 1), entry("b", 2));
for (const { name, next, kept } of [
  { name: "the same but for a time is as it was", next: object("1", entry("a", 5), entry("b", 2)), kept: true },
  { name: "another time may be another place", next: object("1", entry("b", 2), entry("a", 5)), kept: true },
  { name: "a changed value has its new time", next: object("2", entry("a", 5), entry("b", 2)), kept: false },
  { name: "a new claim has its new time", next: object("1", entry("a", 5, { "f:x": {} }), entry("b", 2)), kept: false },
  { name: "a new claim of the second one too", next: object("1", entry("a", 5), entry("b", 2, { "f:x": {} })), kept: false },
  { name: "a new manager stays", next: object("1", entry("a", 1), entry("c", 2)), kept: false },
  { name: "one manager less stays so", next: object("1", entry("a", 5)), kept: false },
]) {
  test(`field ownership: ${name}`, () => {
    const requested = next.metadata.managedFields;
    keepTimesWhenUnchanged(next, current);
    assert.deepEqual(next.metadata.managedFields, kept ? current.metadata.managedFields : requested);
  });
}

test("field ownership: an entry is compared with that of its own subresource", () => {
  const ofStatus = { ...entry("a", 2), subresource: "status" };
  const stored = object("1", entry("a", 1), ofStatus);
  const renewed = object("1", entry("a", 5), ofStatus);
  keepTimesWhenUnchanged(renewed, stored);
  assert.deepEqual(renewed.metadata.managedFields, stored.metadata.managedFields);
  const changed = object("1", entry("a", 5, { "f:x": {} }), ofStatus);
  keepTimesWhenUnchanged(changed, stored);
  assert.deepEqual(changed.metadata.managedFields, [entry("a", 5, { "f:x": {} }), ofStatus]);
});
