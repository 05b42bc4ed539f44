/** Lines of a log: colours of terminals become classes, all other control characters go. */

interface Segment {
  readonly text: string;
  /** Space separated CSS classes; `""` for none. */
  readonly look: string;
}

// CSI sequences, OSC strings up to their end, other two-character escapes, then single control characters but tab.
const control =
  /\u001b\[([0-9;:<=>?]*)[ -/]*([@-~])|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[ -/]*[0-~]?|[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

const colours = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** A line with more pieces is shown without colours from there. */
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
        break; // of 256 colours and true colour: the arguments are no codes
      else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) colour = colours[code % 10] as string;
    }
  }
  pending += line.slice(from);
  push();
  return segments;
}

/** What a line of a list has room for; more would only cost memory. */
export const mostLine = 4_000;

export const cutLine = (line: string): string =>
  line.length <= mostLine
    ? line
    : `${line.slice(0, mostLine)} … ${(line.length - mostLine).toLocaleString("en")} more characters`;
