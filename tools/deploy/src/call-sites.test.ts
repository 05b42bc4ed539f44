import assert from "node:assert/strict";
import { test } from "node:test";
import { transform } from "esbuild";
import { callSitesOf, sourceOf } from "./call-sites.ts";

/** Call sites after TypeScript-only code was removed. */
async function compiled(source: string, sourcefile: string) {
  const { code, map } = await transform(source, { loader: "ts", sourcemap: "external", sourcefile });
  const sites = callSitesOf(code, JSON.parse(map));
  return (call: string) => {
    const line = code.split("\n").findIndex((text) => text.includes(call)) + 1;
    return sourceOf(sites, line);
  };
}

const source = `interface Gone {
  readonly field: string;
}

export function first(value: Gone): void {
  // a comment
  console.log(
    "one",
    value.field,
  );
  console.log("two");
}
`;

test("a position in compiled code maps to the source line where its statement begins", async () => {
  const placeOf = await compiled(source, "../packages/apiserver/src/first.ts");
  assert.deepEqual(placeOf('"one"'), { file: "packages/apiserver/src/first.ts", line: 8 });
  assert.deepEqual(placeOf('"two"'), { file: "packages/apiserver/src/first.ts", line: 11 });
});

test("code that is not from the sources has no source position", async () => {
  const placeOf = await compiled(source, "../node_modules/.pnpm/x@1/node_modules/x/index.ts");
  assert.equal(placeOf('"two"'), undefined);
});
