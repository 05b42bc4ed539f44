import assert from "node:assert/strict";
import { test } from "node:test";
import { redactedUrl } from "./redacted-url.ts";

for (const [url, want] of [
  ["/api/v1/pods?limit=5&watch=true", "/api/v1/pods?limit=5&watch=true"],
  ["/exec?command=sh&command=-c&command=echo%20secret&tty=1", "/exec?command=*&command=*&command=*&tty=1"],
  ["/api?access_token=abc&timeout=5s", "/api?access_token=*&timeout=5s"],
  ["/api?a=1&TOKEN=abc", "/api?a=1&TOKEN=*"],
] as const) {
  test(`the log shows ${url} without secrets`, () => assert.equal(redactedUrl(url), want.replaceAll("*", "--- REDACTED ---")));
}
