import { existsSync } from "node:fs";
import { enableCompileCache, type ResolveFnOutput, registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { kubernetesRelease } from "../process/release.ts";

/**
 * Prints the release when the command line is `--version` alone, which must not load a daemon. All other command lines, also those
 * with `--version` among other flags, are parsed by runMain.
 * @param args without the program
 * @returns whether it was printed
 */
export function printVersionAlone(args: readonly string[]): boolean {
  const isAlone = args.length === 1 && (args[0] === "--version" || args[0] === "--version=true");
  if (isAlone) process.stdout.write(`Kubernetes ${kubernetesRelease.gitVersion}\n`);
  return isAlone;
}

/** Folder of the compile cache, next to the daemon's entry file. */
export const compiledCodeFolder = "compiled-code";

/**
 * Speeds up later imports. Code is loaded from the compile cache that the build has written; code that is missing there, or was
 * built from another source or Node version, is compiled as usual. The cache is never written here, so it is as trustworthy as
 * the permissions of its folder. Resolution of imports between the project's packages is shortened: relative specifiers are used
 * as they are, and package specifiers are resolved once.
 * @param folder of the daemon's entry file, `packages/apiserver/dist`
 */
export function quickenImports(folder: string): void {
  const options = { directory: join(folder, compiledCodeFolder), readOnly: true }; // `readOnly` is missing in @types/node
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
