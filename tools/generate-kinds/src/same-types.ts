import { compareKubeVersions } from "@coxswain/apimachinery/objects/meta/group-version";
import type { PackageFacts } from "./facts.ts";

/** By folder: the types of a group version that are those of another one, by that one's folder. */
type SameTypes = ReadonlyMap<string, ReadonlyMap<string, string>>;

/**
 * Which types a version of a group has in common with a better one (stable before beta before alpha): those whose text is
 * the same, and that of every type of the group that it names.
 * @param textsOf the types of a group version as they are written, by name
 */
export function sameTypes(
  packages: readonly PackageFacts[],
  textsOf: (facts: PackageFacts) => ReadonlyMap<string, string>,
): SameTypes {
  const same = new Map<string, Map<string, string>>();
  const groups = Map.groupBy(packages, ({ folder }) => folder.split("/")[0] as string);
  for (const versions of groups.values()) {
    const best = versions.toSorted((a, b) => compareKubeVersions(a.version, b.version));
    const texts = best.map(textsOf);
    for (const [i, { folder }] of best.entries()) {
      const found = new Map<string, string>();
      for (let j = 0; j < i; j++) {
        const other = best[j]?.folder as string;
        for (const name of commonTypes(texts[i] as Texts, texts[j] as Texts)) if (!found.has(name)) found.set(name, other);
      }
      same.set(folder, found);
    }
  }
  return same;
}

type Texts = ReadonlyMap<string, string>;

function commonTypes(texts: Texts, others: Texts): Set<string> {
  const common = new Set([...texts.keys()].filter((name) => texts.get(name) === others.get(name)));
  const differs = (name: string): boolean => namesIn(texts.get(name) ?? "").some((used) => texts.has(used) && !common.has(used));
  for (let before = -1; before !== common.size; ) {
    before = common.size;
    for (const name of common) if (differs(name)) common.delete(name);
  }
  return common;
}

/** Words that may be types of the same file; a word after a dot belongs to another file. */
function namesIn(text: string): string[] {
  return [...text.matchAll(/(?<![.\w])[A-Z]\w*/g)].map(([name]) => name);
}
