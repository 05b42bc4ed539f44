/**
 * Parses CSV (RFC 4180) like Go's encoding/csv with default options: blank lines are skipped, nothing is trimmed, and quotes
 * may only enclose a whole field, doubled inside it.
 * @throws Error with Go's text: `parse error on line 2, column 3: bare " in non-quoted field`
 */
export function parseCsv(text: string): string[][] {
  const records: string[][] = [];
  const source = text.replaceAll("\r\n", "\n");
  let at = 0;
  let line = 1;
  while (at < source.length) {
    if (source[at] === "\n") {
      at++;
      line++;
      continue;
    }
    const record: string[] = [];
    const startOfLine = at;
    for (;;) {
      const field = source[at] === '"' ? quotedField(source, at, line) : plainField(source, at, line, startOfLine);
      record.push(field.value);
      line += field.value.split("\n").length - 1;
      at = field.end;
      if (source[at] !== ",") break;
      at++;
    }
    records.push(record);
    at++; // skip the line break
    line++;
  }
  return records;
}

interface Field {
  readonly value: string;
  /** Index of the comma or line break after the field. */
  readonly end: number;
}

function plainField(source: string, start: number, line: number, startOfLine: number): Field {
  let end = start;
  while (end < source.length && source[end] !== "," && source[end] !== "\n") {
    if (source[end] === '"') {
      throw new Error(`parse error on line ${line}, column ${end - startOfLine + 1}: bare " in non-quoted field`);
    }
    end++;
  }
  return { value: source.slice(start, end), end };
}

function quotedField(source: string, start: number, line: number): Field {
  let value = "";
  for (let at = start + 1; at < source.length; at++) {
    if (source[at] !== '"') {
      value += source[at];
    } else if (source[at + 1] === '"') {
      value += '"';
      at++;
    } else {
      const next = source[at + 1];
      if (next === undefined || next === "," || next === "\n") return { value, end: at + 1 };
      throw new Error(`parse error on line ${line}, column ${at - start + 1}: extraneous or missing " in quoted-field`);
    }
  }
  throw new Error(`parse error on line ${line}, column ${source.length - start + 1}: extraneous or missing " in quoted-field`);
}
