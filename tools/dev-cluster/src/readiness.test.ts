import assert from "node:assert/strict";
import { test } from "node:test";
import { failedChecks } from "./readiness.ts";

for (const { page, want } of [
  {
    page: "[+]ping ok\n[-]etcd failed: reason withheld\n[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\nreadyz check failed\n",
    want: "etcd, poststarthook/rbac/bootstrap-roles failed",
  },
  { page: "internal server error: it is not leading\n", want: "internal server error: it is not leading" },
  { page: "", want: "" },
])
  test(`the summary of a health page has the failed checks, else the last line (${JSON.stringify(want)})`, () => {
    assert.equal(failedChecks(page), want);
  });
