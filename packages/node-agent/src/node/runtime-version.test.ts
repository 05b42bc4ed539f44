import assert from "node:assert/strict";
import { test } from "node:test";
import { runtimeVersion } from "./runtime-version.ts";

for (const { written, want } of [
  { written: "1.6.20", want: "1.6.20" },
  { written: "v1.7.0-rc.1+abc", want: "1.7.0-rc.1+abc" },
  { written: "1.6.20~ds1", want: "1.6.20" },
  { written: "1.6.20-01", want: "1.6.20" },
  { written: "20.10", want: "20.10" },
  { written: "1.06.2ubuntu", want: "1.6.2" },
  { written: "1.2.3.4", want: "1.2.3.4" },
  { written: "01.2.3", want: "Unknown" },
  { written: "7", want: "Unknown" },
  { written: "", want: "Unknown" },
]) {
  test(`a runtime of version ${JSON.stringify(written)} is reported as ${want}`, () =>
    assert.equal(runtimeVersion(written), want));
}
