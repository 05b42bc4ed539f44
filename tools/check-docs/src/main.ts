import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { reasonCodes } from "@coxswain/apimachinery/errors/reasons";
import { pluginCatalogue } from "@coxswain/apiserver/admission/catalogue";
import { catalogue } from "@coxswain/controller-manager/catalogue";
import { plugins } from "@coxswain/scheduler/plugins/catalogue";
import { checkCompatibility, checkPaths, checkReasons, type Known } from "./check.ts";

/** Prints where the documents say something else than the code; exit code 1 when they do. */
const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const exists = (path: string): boolean => existsSync(join(root, path));
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const known = (rows: readonly { name: string; make?: unknown }[]): Known[] =>
  rows.map(({ name, make }) => ({ name, built: make !== undefined }));

const documents = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", ...globSync("docs/**/*.md", { cwd: root })];
const problems = [
  ...checkCompatibility(read("docs/compatibility.md"), {
    sections: {
      Controllers: known(catalogue),
      "Admission plugins": known(pluginCatalogue),
      "Scheduler plugins": Object.keys(plugins).map((name) => ({ name, built: true })),
    },
    read: (path) => (exists(path) ? read(path) : undefined),
  }),
  ...checkReasons(read("docs/errors.md"), reasonCodes),
  ...documents.flatMap((path) => checkPaths(path, read(path), exists)),
];
for (const problem of problems) console.error(problem);
console.log(`${documents.length} documents, ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
