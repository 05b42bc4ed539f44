import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { type EntryCodec, newEntry } from "../storage/entry.ts";
import { unlimitedEntries } from "../storage/testing.ts";
import { Change } from "./history.ts";

test("a deletion's event lets go of its object in its turn, and is only bytes then", () => {
  const encoded: (string | undefined)[] = [];
  const codec: EntryCodec = {
    toJson(object) {
      encoded.push(`${object.metadata.name} ${object.metadata.resourceVersion}`);
      return JSON.stringify(object);
    },
    *toJsonInSteps(object) {
      yield;
      return this.toJson(object);
    },
    fromStored: (bytes) => JSON.parse(bytes.toString()) as KubeObject,
    fromJson: (bytes) => JSON.parse(bytes.toString()) as KubeObject,
    fieldsOf: () => ({}),
    memory: unlimitedEntries(),
  };
  const anEntry = (name: string) => newEntry(codec, name, 3, { metadata: { name } });
  const change = new Change("gone", 5, anEntry("gone"), undefined);
  const event = change.event(true, false);
  assert.equal(event, change.event(true, false), "one for all");
  for (let i = 0; i < 10_000; i++) anEntry(`other-${i}`).warm();
  assert.ok(encoded.includes("gone 5"));
});
