import assert from "node:assert/strict";
import { test } from "node:test";
import { wantsIndent } from "./negotiation.ts";

for (const { query, agent, want } of [
  { query: "", agent: "kubectl/v1.23.0", want: false },
  { query: "", agent: "curl/8.0", want: true },
  { query: "", agent: "Wget/1.21", want: true },
  { query: "", agent: "Mozilla/4.0", want: false },
  { query: "", agent: "my curl/8.0", want: false },
  { query: "", agent: undefined, want: false },
  { query: "pretty", agent: "kubectl/v1.23.0", want: false },
  { query: "pretty", agent: "Mozilla/5.0 (X11)", want: true },
  { query: "pretty=true", agent: undefined, want: true },
  { query: "pretty=1", agent: undefined, want: true },
  { query: "pretty=0", agent: "curl/8.0", want: false },
  { query: "pretty=yes", agent: "curl/8.0", want: false },
  { query: "pretty=false", agent: "curl/8.0", want: false },
]) {
  test(`?${query} from ${agent ?? "nobody"} is ${want ? "" : "not "}indented`, () => {
    assert.equal(wantsIndent(new URLSearchParams(query), agent), want);
  });
}
