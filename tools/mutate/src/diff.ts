/** Differing lines of two texts with one line of context, in the format of `diff -u`. */
export function diffOf(before: string, after: string): string {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < Math.min(old.length, now.length) && old[start] === now[start]) start++;
  let same = 0;
  while (same < Math.min(old.length, now.length) - start && old.at(-1 - same) === now.at(-1 - same)) same++;
  const marked = (mark: string, lines: readonly string[]): string[] => lines.map((line) => `${mark}${line}`);
  return [
    ...marked(" ", old.slice(Math.max(start - 1, 0), start)),
    ...marked("-", old.slice(start, old.length - same)),
    ...marked("+", now.slice(start, now.length - same)),
    ...marked(" ", old.slice(old.length - same, old.length - same + 1)),
  ].join("\n");
}
