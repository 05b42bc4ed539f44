/** Units and drop-ins derived from those of the archive, with other flags. Pure. */
import type { FlagMap } from "../config/settings.ts";

/** First line of each file that this program writes, and may therefore replace and remove. */
export const header = "# Written by coxswain; to change it, add a drop-in (systemctl edit).\n";

interface Command {
  /** Lines of the unit before and after it. */
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** `ExecStart=/usr/bin/kube-apiserver` */
  readonly start: string;
  readonly flags: FlagMap;
  /** Words that are not flags: `$KUBE_APISERVER_ARGS`. */
  readonly rest: readonly string[];
}

/** @param text a unit of the archive: `ExecStart=/usr/bin/kube-apiserver \`, a flag on each line, `$KUBE_APISERVER_ARGS` at the end */
function commandOf(text: string): Command {
  const lines = text.split("\n");
  const first = lines.findIndex((line) => line.startsWith("ExecStart="));
  const last = lines.findIndex((line, i) => i >= first && !line.endsWith("\\"));
  const [start = "", ...words] = lines.slice(first, last + 1).map((line) => line.replace(/ *\\$/, "").trim());
  return {
    before: lines.slice(0, first),
    after: lines.slice(last + 1),
    start,
    flags: flagsIn(words.map(unquoted)),
    rest: words.filter((word) => !isFlag(word)),
  };
}

/** The flags among the words of a command line; other words are ignored. */
export const flagsIn = (words: readonly string[]): FlagMap =>
  Object.fromEntries(words.filter(isFlag).map((word) => splitFlag(word.slice(2))));

const isFlag = (word: string): boolean => /^"?--/.test(word);

export const unitFlags = (text: string): FlagMap => commandOf(text).flags;

/** The unit with these flags replacing its own of the same name; further ones are added. */
export function unitWithFlags(text: string, flags: FlagMap): string {
  const { before, after, start, flags: own, rest } = commandOf(text);
  const words = [start, ...flagWords({ ...own, ...flags }).map(quoted), ...rest];
  return header + [...before, words.join(" \\\n  "), ...after].join("\n");
}

/** `--name=value`, sorted by name. */
export const flagWords = (flags: FlagMap): string[] =>
  Object.entries(flags)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `--${name}=${value}`);

function splitFlag(text: string): [string, string] {
  const at = text.indexOf("=");
  return at < 0 ? [text, "true"] : [text.slice(0, at), text.slice(at + 1)];
}

/** Quotes a word for systemd if necessary. Source: systemd.service(5), Command lines */
export function quoted(word: string): string {
  const escaped = word.replaceAll("%", "%%").replaceAll("$", "$$$$");
  return /^[\w@%+=:,./$*[\]-]+$/.test(escaped) ? escaped : `"${escaped.replaceAll(/[\\"]/g, "\\$&")}"`;
}

/** The inverse of {@link quoted}. */
function unquoted(word: string): string {
  const inner = word.startsWith('"') ? word.slice(1, -1).replaceAll(/\\([\\"])/g, "$1") : word;
  return inner.replaceAll("%%", "%").replaceAll("$$", "$");
}
