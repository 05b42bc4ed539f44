/** `node -C cox-source tools/fuzz/src/main.ts [target…]`: searches for inputs that break a decoder; see `--help`. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { nameOf, writeCorpus } from "./corpus.ts";
import type { Find } from "./fuzzer.ts";
import { chosenTargets, type Options, optionsOf, UsageError, usage } from "./options.ts";
import { targetNames } from "./targets.ts";
import { WatchedThread } from "./watched.ts";
import type { Task } from "./worker.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));

async function run(options: Options): Promise<number> {
  const names = chosenTargets(options.targets, await targetNames());
  if (options.list) {
    console.log(names.join("\n"));
    return 0;
  }
  let faults = 0;
  const withCoverage = options.input === undefined && !options.blind;
  const thread = new WatchedThread({ withCoverage });
  for (const name of names) {
    // A new thread per target, because reading coverage is slow when the modules of other targets are loaded.
    if (withCoverage) await thread.close();
    const { finds, inputs, corpus, characters } = await thread.run(taskOf(name, options), show);
    faults += finds.length;
    const kept = options.save && finds.length === 0 ? `, ${writeCorpus(name, corpus)} kept` : "";
    console.log(`${name}: ${inputs} inputs, ${characters} characters of source run${kept}, ${finds.length} faults`);
  }
  await thread.close();
  return faults === 0 ? 0 : 1;
}

function taskOf(name: string, { input, seed, seconds }: Options): Task {
  if (input !== undefined) return { name, input: readFileSync(input) };
  return { name, limits: { seed, most: Number.POSITIVE_INFINITY, cpuSeconds: seconds } };
}

function show({ target, input, fault }: Find): void {
  const folder = join(root, ".cox/fuzz", target);
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `fault-${nameOf(input)}`);
  writeFileSync(file, input);
  const command = `node -C cox-source tools/fuzz/src/main.ts ${target} --input ${relative(root, file)}`;
  console.log(
    [`${target}: ${fault.signature}`, `  input: ${JSON.stringify(input.toString("latin1"))}`, `  ${command}`, fault.text].join(
      "\n",
    ),
  );
}

try {
  const options = optionsOf(process.argv.slice(2));
  if (options.help) console.log(usage);
  else process.exitCode = await run(options);
} catch (err) {
  if (!(err instanceof UsageError)) throw err;
  console.error(`fuzz: ${err.message}`);
  process.exitCode = 2;
}
