/** A source file, path below the repository. */
export interface Source {
  readonly path: string;
  readonly text: string;
}

/** Complete by design, whether or not something uses each of them: the tables of upstream's kinds. */
const complete = ["packages/apimachinery/src/objects/schema/kinds/"];

/** Parts of inferred types of other files' exports: without their `export`, tsc cannot write those files' declarations (TS4023, TS4058). */
const partsOfInferredTypes = ["DnsServer", "PortRange", "ProgramFlags"];

/**
 * Functions, constants, classes and types of the packages that are exported although no other file mentions their name: dead,
 * or of use in their own file only. A name that another file has for something else is not found.
 * @param sources all files that may import from the packages, tests included
 * @returns one line for each, `path: name`
 */
export function unusedExports(sources: readonly Source[]): string[] {
  const mentions = new Map<string, number>();
  for (const { text } of sources)
    for (const word of new Set(text.match(/[\w$]+/g))) mentions.set(word, (mentions.get(word) ?? 0) + 1);
  return sources
    .filter(({ path }) => path.startsWith("packages/") && !path.endsWith(".test.ts"))
    .filter(({ path }) => !complete.some((folder) => path.startsWith(folder)))
    .flatMap(({ path, text }) =>
      [...text.matchAll(/^export (?:async )?(?:function\*?|const|class|interface|type) +([\w$]+)/gm)].flatMap(([, name = ""]) =>
        mentions.get(name) === 1 && !partsOfInferredTypes.includes(name) ? [`${path}: ${name}`] : [],
      ),
    );
}
