import { existsSync } from "node:fs";
import { enableCompileCache, registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Beside the file that a daemon is started by. */
export const compiledCodeFolder = "compiled-code";

/**
 * What is imported from now on is not compiled where the build has left the compiled form of it. What is missing there, or of
 * another text or another Node, is compiled as ever. Nothing is ever written: the folder is only as good as who can.
 * And a relative import of ours is the file that it names: Node would look where each of five thousand leads.
 * @param folder of the file that the daemon is started by, `packages/apiserver/dist`
 */
export function quickenImports(folder: string): void {
  const options = { directory: join(folder, compiledCodeFolder), readOnly: true }; // which @types/node does not know
  if (existsSync(options.directory)) enableCompileCache(options);
  const ours = pathToFileURL(join(folder, "..", "..", "/")).href;
  registerHooks({
    resolve(specifier, context, resolve) {
      const { parentURL } = context;
      const isOwn = parentURL?.startsWith(ours) && specifier.startsWith(".") && specifier.endsWith(".js");
      if (!isOwn) return resolve(specifier, context);
      return { url: new URL(specifier, parentURL).href, format: "module", shortCircuit: true };
    },
  });
}
