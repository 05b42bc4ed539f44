import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { helpText } from "@coxswain/apimachinery/flags/help";
import { flagPage, programs } from "./pages.ts";
import { flagsThatAreRead } from "./readers.ts";

for (const documented of programs) {
  const { program } = documented;

  test(`${program.name} --help shows every flag that is not hidden, and no other`, () => {
    const shown = [...helpText(program).matchAll(/^ {2}(?: {4}|-\w, )--([a-z0-9-]+)/gm)].map((match) => match[1]);
    const wanted = Object.entries(program.flags.table).filter(([, flag]) => flag.hidden !== true);
    assert.deepEqual(shown.toSorted(), [...wanted.map(([name]) => name), "help", "version"].toSorted());
  });

  test(`docs/flags/${program.name}.md equals the table of flags (run tools/generate-flag-docs)`, () => {
    const page = join(import.meta.dirname, `../../../docs/flags/${program.name}.md`);
    assert.equal(readFileSync(page, "utf8"), flagPage(documented));
  });

  test(`${program.name}: exactly the flags without an effect are marked so`, () => {
    const read = flagsThatAreRead(documented);
    const wrong = Object.entries(program.flags.table).flatMap(([name, flag]) => {
      if (flag.wired === false && read.has(name)) return [`--${name} is read: take "wired: false" away`];
      if (flag.wired !== false && flag.idle === undefined && !read.has(name))
        return [`--${name} is not read by any code: it needs "wired: false"`];
      return [];
    });
    assert.deepEqual(wrong, []);
  });
}
