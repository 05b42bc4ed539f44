import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { parseTokenFile } from "./token-file.ts";

const digest = (token: string): string => createHash("sha256").update(token).digest("latin1");

test("reads users, their uid and quoted groups", () => {
  const users = parseTokenFile('t1,jane,u1,"a,b"\n\nt2,joe,u2\n"t""3",x,\r\nt4,ann,u4,c', "f", discardLogger);
  assert.deepEqual(users.get(digest("t1")), { name: "jane", uid: "u1", groups: ["a", "b"] });
  assert.deepEqual(users.get(digest("t2")), { name: "joe", uid: "u2", groups: [] });
  assert.deepEqual(users.get(digest('t"3')), { name: "x", groups: [] });
  assert.deepEqual(users.get(digest("t4")), { name: "ann", uid: "u4", groups: ["c"] });
});

test("lines may end as on Windows, each of them", () => {
  const users = parseTokenFile('t1,jane,u1\r\nt2,joe,u2\r\n\r\nt3,ann,u3,"a"\r\n', "f", discardLogger);
  const found = ["t1", "t2", "t3"].map((token) => users.get(digest(token)));
  assert.deepEqual(found, [
    { name: "jane", uid: "u1", groups: [] },
    { name: "joe", uid: "u2", groups: [] },
    { name: "ann", uid: "u3", groups: ["a"] },
  ]);
  assert.equal(users.size, 3);
});

test("takes names as they stand: a space makes another group, a # begins no comment", () => {
  const users = parseTokenFile('t1,jane,u1,"a, b"\n#t2,joe,u2\n', "f", discardLogger);
  assert.deepEqual(users.get(digest("t1"))?.groups, ["a", " b"]);
  assert.deepEqual(users.get(digest("#t2"))?.name, "joe");
});

for (const { name, text, want } of [
  { name: "too few columns", text: "t1,jane", want: /must have at least 3 columns \(token, user name, user uid\), found 2/ },
  { name: "a quote inside a field", text: 't1,ja"ne,u1', want: /parse error on line 1, column 6: bare " in non-quoted field/ },
  {
    name: "a quote on the line after a field of two lines",
    text: 't1,"a\nb",u1\nt2,ja"n,u2',
    want: /on line 3, column 6: bare "/,
  },
  { name: "a quote behind blank lines", text: '\n\nt1,ja"ne,u1', want: /on line 3, column 6: bare "/ },
  { name: "a quote in the second record", text: 't1,jane,u1\nt"2,joe,u2', want: /on line 2, column 2: bare "/ },
  { name: "text after a quoted field", text: '"t1"x,jane,u1', want: /extraneous or missing " in quoted-field/ },
  { name: "an open quote", text: 't1,jane,"u1', want: /extraneous or missing " in quoted-field/ },
]) {
  test(`refuses ${name} in a token file`, () => {
    assert.throws(() => parseTokenFile(text, "tokens.csv", discardLogger), want);
  });
}

test("of several lines with the same token the last one applies", () => {
  const users = parseTokenFile("t1,jane,u1\nt2,joe,u2\nt1,ann,u3", "f", discardLogger);
  assert.deepEqual([users.size, users.get(digest("t1"))?.name], [2, "ann"]);
});

test("skips an empty token", () => {
  const users = parseTokenFile(",jane,u1\nt2,joe,u2", "f", discardLogger);
  assert.deepEqual([users.size, users.get(digest("t2"))?.name], [1, "joe"]);
});

test("an empty token and one that is there twice are warned of, by file and record, without the token", () => {
  const warnings: unknown[] = [];
  const log = { ...discardLogger, warn: (...said: unknown[]) => void warnings.push(said) };
  parseTokenFile(",jane,u1\n\nt2,joe,u2\nt3,x,u4\nt2,ann,u3", "f", log);
  assert.deepEqual(warnings, [
    ["empty token has been found in token file", { path: "f", record: 1 }],
    ["duplicate token has been found in token file", { path: "f", record: 4 }],
  ]);
});
