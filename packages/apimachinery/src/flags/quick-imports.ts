import { existsSync } from "node:fs";
import { enableCompileCache, type ResolveFnOutput, registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Beside the file that a daemon is started by. */
export const compiledCodeFolder = "compiled-code";

/**
 * What is imported from now on is not compiled where the build has left the compiled form of it. What is missing there, or of
 * another text or another Node, is compiled as ever. Nothing is ever written: the folder is only as good as who can.
 * And where imports among our own packages lead is not looked for thousands of times: a relative one is the file that it
 * names, and a package's is the same for all who name it.
 * @param folder of the file that the daemon is started by, `packages/apiserver/dist`
 */
export function quickenImports(folder: string): void {
  const options = { directory: join(folder, compiledCodeFolder), readOnly: true }; // which @types/node does not know
  if (existsSync(options.directory)) enableCompileCache(options);
  const ours = pathToFileURL(join(folder, "..", "..", "/")).href;
  const known = new Map<string, ResolveFnOutput>();
  registerHooks({
    resolve(specifier, context, resolve) {
      const { parentURL } = context;
      if (parentURL?.startsWith(ours) && specifier.startsWith(".") && specifier.endsWith(".js"))
        return { url: new URL(specifier, parentURL).href, format: "module", shortCircuit: true };
      let found = known.get(specifier);
      if (found === undefined) {
        found = resolve(specifier, context);
        if (specifier.startsWith("@coxswain/")) known.set(specifier, { ...found, shortCircuit: true });
      }
      return found;
    },
  });
}
