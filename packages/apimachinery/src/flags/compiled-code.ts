import { existsSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { join } from "node:path";

/** Beside the file that a daemon is started by. */
export const compiledCodeFolder = "compiled-code";

/**
 * What is imported from now on is not compiled where the build has left the compiled form of it. What is missing there, or of
 * another text or another Node, is compiled as ever. Nothing is ever written: the folder is only as good as who can.
 * @param folder of the file that the daemon is started by
 */
export function readCompiledCode(folder: string): void {
  const options = { directory: join(folder, compiledCodeFolder), readOnly: true }; // which @types/node does not know
  if (existsSync(options.directory)) enableCompileCache(options);
}
