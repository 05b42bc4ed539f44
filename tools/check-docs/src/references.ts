/** Names that documents may refer to. */
interface Tree {
  /** Files relative to the root, with slashes. */
  readonly files: readonly string[];
  /** Commands of `./cox`. */
  readonly verbs: readonly string[];
  /** Scripts of package.json: `pnpm lint`. */
  readonly scripts: readonly string[];
}

/** @returns a function that lists broken references of a document: links, files, folders and commands */
export function newReferenceCheck({ files, verbs, scripts }: Tree): (path: string, markdown: string) => string[] {
  const whole = new Set(["", ...files.flatMap(withFolders)]);
  // Suffixes of paths are accepted, with or without `src/`: `handlers/create.ts`, `apimachinery/volumes/matching.ts`.
  const ends = new Set([...whole].flatMap((path) => [...endsOf(path), ...endsOf(path.replace("/src/", "/"))]));
  return (path, markdown) => {
    const folder = path.split("/").slice(0, -1);
    const problems: string[] = [];
    for (const target of firstGroups(markdown, /\]\(([^)#\s]+)[^)]*\)/g)) {
      if (!/^[a-z]+:/.test(target) && !whole.has(resolve(folder, target))) problems.push(`the link ${target} leads nowhere`);
    }
    for (const target of firstGroups(markdown, /`([\w@-]+\/[\w./@-]+)`/g).filter((target) => rooted.test(target))) {
      if (!whole.has(target.replace(/\/$/, ""))) problems.push(`there is no ${target}`);
    }
    for (const target of firstGroups(markdown, /`((?:[\w@-]+\/)*[\w@.-]+\.ts|(?:[\w@-]+\/)+)`/g)) {
      if (!rooted.test(target) && !ends.has(target.replace(/\/$/, ""))) problems.push(`nothing ends in ${target}`);
    }
    for (const verb of firstGroups(markdown, /(?:^|[\s`(])\.\/cox ([a-z]+)/gm)) {
      if (!verbs.includes(verb)) problems.push(`./cox has no verb ${verb}`);
    }
    for (const script of firstGroups(markdown, /`pnpm (?:run )?([a-z]+)/g)) {
      if (!scripts.includes(script)) problems.push(`package.json has no script ${script}`);
    }
    for (const program of firstGroups(
      markdown,
      /\bnode (?:-C cox-source )?(?:--test )?((?:packages|tools|e2e|examples)\/[\w./-]+)/g,
    )) {
      if (!whole.has(program)) problems.push(`there is no ${program} to run`);
    }
    return problems.map((problem) => `${path}: ${problem}`);
  };
}

/** Paths starting at a folder of the root. */
const rooted = /^(packages|tools|e2e|examples|docs)\//;

function firstGroups(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, group = ""]) => group);
}

/** `a/b/c` → `a`, `a/b`, `a/b/c` */
function withFolders(path: string): string[] {
  const parts = path.split("/");
  return parts.map((_, i) => parts.slice(0, i + 1).join("/"));
}

/** `a/b/c` → `a/b/c`, `b/c`, `c` */
function endsOf(path: string): string[] {
  const parts = path.split("/");
  return parts.map((_, i) => parts.slice(i).join("/"));
}

function resolve(folder: readonly string[], target: string): string {
  const parts = [...folder];
  for (const part of target.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "." && part !== "") parts.push(part);
  }
  return parts.join("/");
}
