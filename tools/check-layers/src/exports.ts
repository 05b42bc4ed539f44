/** A source file; the path is relative to the repository. */
export interface Source {
  readonly path: string;
  readonly text: string;
}

/** Tables of upstream's kinds, which are complete by design, used or not. */
const complete = ["packages/apimachinery/src/objects/schema/kinds/"];

/** Parts of inferred types of other files' exports: without their `export`, tsc cannot write those files' declarations (TS4023, TS4058). */
const partsOfInferredTypes = ["DnsServer", "PortRange", "ProgramFlags"];

/**
 * Exported functions, constants, classes and types of the packages whose name occurs in no other file: dead code,
 * or used only in their own file. An unused export is missed when another file uses the same name for something else.
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
