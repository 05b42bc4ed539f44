/**
 * A process that runs test files again and again, each time with another mutation: only modules that depend on the mutated one are loaded
 * anew, by a URL with the number of the run. Started by test-worker.ts; see messages.ts.
 */
import { readFileSync } from "node:fs";
import { registerHooks, stripTypeScriptTypes } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { RunReply, RunRequest } from "./messages.ts";
import { runFile } from "./node-test.ts";

const marker = "?run=";
const replacement = new URL("./node-test.ts", import.meta.url).href;
const overlayHook = new URL("../overlay.ts", import.meta.url).href;
const nodeOptions = process.env["NODE_OPTIONS"] ?? "";
const stripped = new Map<string, string>();
let number = 0;
let reload = new Set<string>();
let overlay: RunRequest["overlay"];

const withoutRun = (url: string): string => url.split(marker)[0]!;

registerHooks({
  resolve(specifier, context, next) {
    if (specifier === "node:test") return { url: replacement, format: "module-typescript", shortCircuit: true };
    const parentURL = context.parentURL === undefined ? undefined : withoutRun(context.parentURL);
    const resolved = next(specifier, { ...context, parentURL });
    const url = withoutRun(resolved.url);
    return reload.has(url) ? { ...resolved, url: `${url}${marker}${number}` } : resolved;
  },
  load(url, context, next) {
    if (!url.includes(marker)) return next(url, context);
    const file = withoutRun(url);
    const isMutated = overlay !== undefined && pathToFileURL(overlay.file).href === file;
    return { format: "module", source: isMutated ? strip(overlay!.source) : cached(file), shortCircuit: true };
  },
});

const strip = (path: string): string => stripTypeScriptTypes(readFileSync(path, "utf8"));
const cached = (url: string): string => stripped.getOrInsertComputed(url, () => strip(fileURLToPath(url)));

// What a test leaves behind must not end the process; during a run errors are failures, too.
process.on("uncaughtException", () => {}).on("unhandledRejection", () => {});
process.on("message", (request: RunRequest) => void answer(request));

async function answer(request: RunRequest): Promise<void> {
  number++;
  overlay = request.overlay;
  reload = new Set([request.test, ...request.reload].map((path) => pathToFileURL(path).href));
  const env = { ...process.env };
  const { execArgv, exitCode } = process;
  const folder = process.cwd();
  if (overlay !== undefined) {
    // For programs that a test starts.
    process.env["COX_MUTANT_URL"] = pathToFileURL(overlay.file).href;
    process.env["COX_MUTANT_SOURCE"] = overlay.source;
    process.env["NODE_OPTIONS"] = `${nodeOptions} --import=${overlayHook}`;
  }
  const failure = await runFile(() => import(pathToFileURL(request.test).href));
  restoreEnv(env);
  process.execArgv = execArgv;
  process.exitCode = exitCode;
  process.chdir(folder);
  const reply: RunReply = { failure, residentBytes: process.memoryUsage.rss() };
  process.send!(reply);
}

function restoreEnv(env: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  Object.assign(process.env, env);
}
