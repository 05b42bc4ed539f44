import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { flagPage, programs } from "./pages.ts";

const folder = join(import.meta.dirname, "../../../docs/flags");
makeFolderSync(folder);
for (const documented of programs) writeFileSync(join(folder, `${documented.program.name}.md`), flagPage(documented));
