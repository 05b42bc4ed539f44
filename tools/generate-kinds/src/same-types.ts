import { compareKubeVersions } from "@coxswain/apimachinery/objects/meta/group-version";
import type { PackageFacts } from "./facts.ts";

/** By folder of a group version: its types that are identical to another one's, with that one's folder. */
type SameTypes = ReadonlyMap<string, ReadonlyMap<string, string>>;

/**
 * Types that a version of a group shares with a more stable one (stable before beta before alpha): their generated text is
 * identical, and so is that of every type of the group that they refer to.
 * @param textsOf generated types of a group version, by name
 */
export function sameTypes(
  packages: readonly PackageFacts[],
  textsOf: (facts: PackageFacts) => ReadonlyMap<string, string>,
): SameTypes {
  const same = new Map<string, Map<string, string>>();
  const groups = Map.groupBy(packages, ({ folder }) => folder.split("/")[0]!);
  for (const versions of groups.values()) {
    const best = versions.toSorted((a, b) => compareKubeVersions(a.version, b.version));
    const texts = best.map(textsOf);
    for (const [i, { folder }] of best.entries()) {
      const found = new Map<string, string>();
      for (let j = 0; j < i; j++) {
        const other = best[j]!.folder;
        for (const name of commonTypes(texts[i]!, texts[j]!)) if (!found.has(name)) found.set(name, other);
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

/** Words that may refer to types of the same file; a word after a dot refers to another file. */
function namesIn(text: string): string[] {
  return [...text.matchAll(/(?<![.\w])[A-Z]\w*/g)].map(([name]) => name);
}
