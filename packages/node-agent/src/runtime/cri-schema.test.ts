import assert from "node:assert/strict";
import { test } from "node:test";
import wire from "../testing/cri-wire.json" with { type: "json" };
import { criEnums, criMessages } from "./cri-schema.ts";

test("messages and enums have the fields, numbers and types of the CRI's own definition", () => {
  const messages = Object.entries<Readonly<Record<string, readonly [number, string]>>>(criMessages).map(([name, fields]) => {
    const written = Object.entries(fields).map(([field, [number, type]]) => `${field}:${number}:${type}`);
    return [name, written.join(" ")];
  });
  const enums = Object.entries<Readonly<Record<string, number>>>(criEnums).map(([name, values]) => {
    const written = Object.entries(values).map(([value, number]) => `${value}:${number}`);
    return [`enum ${name}`, written.join(" ")];
  });
  assert.deepEqual(Object.fromEntries([...messages, ...enums]), wire);
});
