import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { flagPage, programs } from "./pages.ts";

const folder = join(import.meta.dirname, "../../../docs/flags");
mkdirSync(folder, { recursive: true });
for (const documented of programs) writeFileSync(join(folder, `${documented.program.name}.md`), flagPage(documented));
