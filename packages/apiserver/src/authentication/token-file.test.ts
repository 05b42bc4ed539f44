import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/logging/logger";
import { parseTokenFile } from "./token-file.ts";

const digest = (token: string): string => createHash("sha256").update(token).digest("latin1");

test("reads users, their uid and quoted groups", () => {
  const users = parseTokenFile('t1,jane,u1,"a, b"\n\nt2,joe,u2\n"t""3",x,', "f", discardLogger);
  assert.deepEqual(users.get(digest("t1")), { name: "jane", uid: "u1", groups: ["a", "b"] });
  assert.deepEqual(users.get(digest("t2")), { name: "joe", uid: "u2", groups: [] });
  assert.deepEqual(users.get(digest('t"3')), { name: "x", groups: [] });
});

test("refuses a line with too few columns, and skips an empty token", () => {
  assert.throws(() => parseTokenFile("t1,jane", "tokens.csv", discardLogger), /at least 3 columns/);
  assert.equal(parseTokenFile(",jane,u1", "f", discardLogger).size, 0);
});
