import assert from "node:assert/strict";
import { test } from "node:test";
import { checkNonSpecialIp, portNameProblems } from "./field-checks.ts";

for (const { ip, bad } of [
  { ip: "10.0.0.1", bad: false },
  { ip: "2001:db8::1", bad: false },
  { ip: "127.0.0.1", bad: true },
  { ip: "127.1.2.3", bad: true },
  { ip: "::ffff:127.0.0.1", bad: true },
  { ip: "::ffff:a9fe:a9fe", bad: true },
  { ip: "169.254.169.254", bad: true },
  { ip: "0.0.0.0", bad: true },
  { ip: "::", bad: true },
  { ip: "0:0:0:0:0:0:0:1", bad: true },
  { ip: "fe80::1", bad: true },
  { ip: "224.0.0.1", bad: true },
  { ip: "ff02::1", bad: true },
]) {
  test(`${ip} ${bad ? "may not" : "may"} be an endpoint`, () => assert.equal(checkNonSpecialIp(ip, "ip").length > 0, bad));
}

test("port names are short, lower case and have a letter", () => {
  assert.deepEqual(portNameProblems("https-1"), []);
  assert.deepEqual(portNameProblems("80"), ["must contain at least one letter (a-z)"]);
  assert.deepEqual(portNameProblems("a--b"), ["must not contain consecutive hyphens"]);
  assert.deepEqual(portNameProblems("averyveryverylongname"), ["must be no more than 15 characters"]);
});
