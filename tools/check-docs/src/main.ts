import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { reasonCodes } from "@coxswain/apimachinery/objects/errors/reasons";
import { pluginCatalogue } from "@coxswain/apiserver/admission/catalogue";
import { catalogue } from "@coxswain/controller-manager/catalogue";
import { plugins } from "@coxswain/scheduler/plugins/catalogue";
import { checkCompatibility, checkReasons, type Known } from "./check.ts";
import { newReferenceCheck } from "./references.ts";

/** Prints discrepancies between documents and code; exit code 1 when there are any. */
const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const exists = (path: string): boolean => existsSync(join(root, path));
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const known = (rows: readonly { name: string; make?: unknown }[]): Known[] =>
  rows.map(({ name, make }) => ({ name, built: make !== undefined }));

const documents = globSync(["*.md", "docs/**/*.md", "tools/*/README.md"], { cwd: root }).sort();
const inTree = (pattern: string): string[] =>
  globSync(pattern, { cwd: root, exclude: (path) => /(^|\/)(node_modules|dist)$/.test(String(path)) });
const checkReferences = newReferenceCheck({
  files: ["*", "packages/**/*.*", "tools/**/*.*", "e2e/**/*.*", "examples/**/*.*", "docs/**/*.*"].flatMap(inTree),
  verbs: [...read("cox").matchAll(/^ {2}([a-z]+)(?=[ \n])/gm)].map(([, verb = ""]) => verb),
  scripts: Object.keys(JSON.parse(read("package.json")).scripts),
});
const problems = [
  ...checkCompatibility(read("docs/compatibility.tsv"), read("docs/compatibility.md"), {
    sections: {
      Controllers: known(catalogue),
      "Admission plugins": known(pluginCatalogue),
      "Scheduler plugins": Object.keys(plugins).map((name) => ({ name, built: true })),
    },
    read: (path) => (exists(path) ? read(path) : undefined),
  }),
  ...checkReasons(read("docs/errors.md"), reasonCodes),
  ...documents.flatMap((path) => checkReferences(path, read(path))),
];
for (const problem of problems) console.error(problem);
console.log(`${documents.length} documents, ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
