import assert from "node:assert/strict";
import { test } from "node:test";
import { newReferenceCheck } from "./references.ts";

const check = newReferenceCheck({
  files: ["README.md", "packages/x/src/room/file.ts", "tools/run/src/main.ts"],
  verbs: ["up"],
  scripts: ["lint"],
});

for (const { name, page, want } of [
  {
    name: "links",
    page: "[a](../README.md) [b](missing.md#part) [c](https://example.com)",
    want: "the link missing.md leads nowhere",
  },
  { name: "paths from the root", page: "`packages/x/` `packages/x/src/y.ts`", want: "there is no packages/x/src/y.ts" },
  {
    name: "ends of paths",
    page: "`room/` `room/file.ts` `x/room/file.ts` `file.ts` `room/other.ts`",
    want: "nothing ends in room/other.ts",
  },
  { name: "folders", page: "`x/room/` `y/room/`", want: "nothing ends in y/room/" },
  { name: "verbs", page: "`./cox up --x`\n\n    ./cox down\n", want: "./cox has no verb down" },
  { name: "scripts", page: "`pnpm lint`, `pnpm run format`", want: "package.json has no script format" },
  {
    name: "programs",
    page: "node -C cox-source tools/run/src/main.ts; node tools/run/main.ts",
    want: "there is no tools/run/main.ts to run",
  },
]) {
  test(`finds dead ${name}`, () => assert.deepEqual(check("docs/page.md", page), [`docs/page.md: ${want}`]));
}
