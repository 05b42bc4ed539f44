/** Formats lines of a log: terminal colours become CSS classes, other control characters are removed. */

interface Segment {
  readonly text: string;
  /** Space separated CSS classes; `""` for none. */
  readonly look: string;
}

// CSI sequences, OSC strings up to their end, other two-character escapes, then single control characters but tab.
const control =
  /\u001b\[([0-9;:<=>?]*)[ -/]*([@-~])|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[ -/]*[0-~]?|[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

const colours = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** Limit of segments per line; the rest of the line is shown without colours. */
const mostSegments = 200;

/** Splits a line of a log by its ANSI colours; other escape sequences are removed. */
export function segmentsOf(line: string): Segment[] {
  const segments: Segment[] = [];
  let colour = "";
  let isBold = false;
  let from = 0;
  let pending = "";
  const push = (): void => {
    const look = [...(colour === "" ? [] : [`ansi-${colour}`]), ...(isBold ? ["ansi-bold"] : [])].join(" ");
    if (pending !== "") segments.push({ text: pending, look });
    pending = "";
  };
  for (const match of line.matchAll(control)) {
    pending += line.slice(from, match.index);
    from = match.index + match[0].length;
    if (match[2] !== "m" || segments.length >= mostSegments) continue;
    push();
    for (const code of (match[1] || "0").split(";").map(Number)) {
      if (code === 0) [colour, isBold] = ["", false];
      else if (code === 1) isBold = true;
      else if (code === 22) isBold = false;
      else if (code === 39) colour = "";
      else if (code === 38 || code === 48)
        break; // codes of 256 colours and true colour have arguments, which are not codes
      else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) colour = colours[code % 10]!;
    }
  }
  pending += line.slice(from);
  push();
  return segments;
}

/** Maximum number of shown characters per line; longer lines would cost memory without being readable. */
export const mostLine = 4_000;

export const cutLine = (line: string): string =>
  line.length <= mostLine
    ? line
    : `${line.slice(0, mostLine)} … ${(line.length - mostLine).toLocaleString("en")} more characters`;
