/**
 * Formats the errors of an expression like cel-go: each with its source line and a marker below the position.
 * Source: cel-go v0.9 common/errors.go, common/error.go
 */

export interface Issue {
  /** Position in UTF-16 code units; undefined when the issue concerns the whole expression. */
  readonly at: number | undefined;
  readonly message: string;
}

const mostShown = 100;
const longestShownLine = 16384;
/** Total limit in characters. Not in upstream, where a hundred issues in a long line repeat the line a hundred times. */
const mostText = 262_144;

/** Sorted by position: `ERROR: <input>:1:6: undefined field 'x'\n | self.x\n | .....^`. */
export function formatIssues(text: string, issues: readonly Issue[]): string {
  const sorted = issues.toSorted((a, b) => (a.at ?? -1) - (b.at ?? -1));
  const shown: string[] = [];
  let length = 0;
  for (const issue of sorted.slice(0, mostShown)) {
    const next = format(issue, issue.at === undefined ? nowhere : placeOf(text, issue.at));
    length += next.length;
    if (shown.length > 0 && length > mostText) break;
    shown.push(next);
  }
  const more = sorted.length - shown.length;
  return [...shown, ...(more > 0 ? [`${more} more errors were truncated`] : [])].join("\n");
}

interface Place {
  readonly line: number;
  /** In characters, from 0. */
  readonly column: number;
  readonly source: string | undefined;
}

const nowhere: Place = { line: -1, column: -1, source: undefined };

function placeOf(text: string, at: number): Place {
  const start = text.lastIndexOf("\n", at - 1) + 1;
  const end = text.indexOf("\n", start);
  let line = 1;
  for (let i = text.indexOf("\n"); i >= 0 && i < start; i = text.indexOf("\n", i + 1)) line++;
  return { line, column: [...text.slice(start, at)].length, source: text.slice(start, end < 0 ? undefined : end) };
}

function format({ message }: Issue, { line, column, source }: Place): string {
  const head = `ERROR: <input>:${line}:${column + 1}: ${message}`;
  if (source === undefined || Buffer.byteLength(source) > longestShownLine) return head;
  const characters = [...source.replaceAll("\t", " ")];
  const isWide = (character: string | undefined): boolean => character !== undefined && character > "\u007f";
  const dots = characters.slice(0, column).map((character) => (isWide(character) ? "．" : "."));
  return `${head}\n | ${characters.join("")}\n | ${dots.join("")}${isWide(characters[column]) ? "＾" : "^"}`;
}
