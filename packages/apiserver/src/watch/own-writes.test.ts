import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry } from "../storage/storage.ts";
import { OwnWrites } from "./own-writes.ts";

const entry = (key: string, revision: number): Entry => ({ key, revision }) as Entry;

test("an entry is taken once, and only by the event of its key and revision", () => {
  const own = new OwnWrites();
  const written = entry("web/a", 5);
  own.add(written);
  assert.equal(own.take("web/a", 4), undefined);
  assert.equal(own.take("web/a", 5), written);
  assert.equal(own.take("web/a", 5), undefined);
  own.add(entry("web/a", 6));
  assert.equal(own.take("web/b", 6), undefined, "another history has another object at this revision");
  assert.equal(own.take("web/a", 6), undefined);
});

test("without events the oldest entries are dropped", () => {
  const own = new OwnWrites();
  for (let revision = 1; revision <= 1_001; revision++) own.add(entry("web/a", revision));
  assert.equal(own.take("web/a", 1), undefined);
  assert.equal(own.take("web/a", 2)?.revision, 2);
});
