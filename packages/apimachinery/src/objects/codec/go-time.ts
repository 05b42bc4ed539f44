const secondsLayout = "2006-01-02T15:04:05Z07:00";
const microLayout = "2006-01-02T15:04:05.000000Z07:00";

/**
 * The time of a `metav1.Time` field in its canonical form: UTC, whole seconds.
 * @returns undefined for Go's zero time, which JSON writes as null
 * @throws Error with the text of Go's time.Parse: `parsing time "x" as "2006-…": cannot parse "x" as "2006"`
 */
export function canonicalTime(text: string): string | undefined {
  if (knownCanonical.has(text)) return text;
  const time = parse(text, secondsLayout, "any");
  if (isZeroTime(time)) return undefined;
  return remembered(`${new Date(time.ms).toISOString().slice(0, 19)}Z`);
}

/** Cache of texts known to be canonical: the same times are decoded repeatedly, and parsing them is slow. */
const knownCanonical = new Set<string>();

function remembered(canonical: string): string {
  if (knownCanonical.size >= 4096) knownCanonical.clear();
  knownCanonical.add(canonical);
  return canonical;
}

/** The same for times from protobuf. Both are pure caches, emptied when they are full. */
const textOfSeconds = new Map<number, string>();

/** As `canonicalTime` for `metav1.MicroTime`, which has exactly six fractional digits. */
export function canonicalMicroTime(text: string): string | undefined {
  const time = parse(text, microLayout, 6);
  if (isZeroTime(time) && time.micros === 0) return undefined;
  return `${new Date(time.ms).toISOString().slice(0, 19)}.${String(time.micros).padStart(6, "0")}Z`;
}

/** Seconds since the Unix epoch and microseconds of a canonical time. */
export function timeParts(text: string): { seconds: number; micros: number } {
  const seconds = Date.parse(`${text.slice(0, 19)}Z`) / 1000;
  return { seconds, micros: text[19] === "." ? Number(text.slice(20, 26)) : 0 };
}

/**
 * Canonical text of a time decoded from protobuf, with a fraction if `micros` is given; undefined for Go's zero time.
 * @throws Error for times without RFC 3339 form
 */
export function timeFromParts(seconds: number, micros?: number): string | undefined {
  if (micros === undefined) {
    const known = textOfSeconds.get(seconds);
    if (known !== undefined) return known;
  }
  if (seconds === zeroSeconds && (micros ?? 0) === 0) return undefined;
  const ms = seconds * 1000;
  if (Math.abs(ms) > 8.64e15) throw new Error("time is out of range");
  const text = new Date(ms).toISOString();
  // Years with more than four digits have no RFC 3339 form; Go fails to marshal them, too.
  if (text.length !== 24) throw new Error("Time.MarshalJSON: year outside of range [0,9999]");
  if (micros !== undefined) return `${text.slice(0, 19)}.${String(micros).padStart(6, "0")}Z`;
  const canonical = `${text.slice(0, 19)}Z`;
  if (textOfSeconds.size >= 4096) textOfSeconds.clear();
  textOfSeconds.set(seconds, canonical);
  return canonical;
}

/** 0001-01-01T00:00:00Z */
const zeroSeconds = -62_135_596_800;

interface Parsed {
  readonly ms: number;
  readonly micros: number;
}

function isZeroTime(time: Parsed): boolean {
  return time.ms === zeroSeconds * 1000;
}

const digits = /^\d+$/;

function parse(text: string, layout: string, fraction: "any" | 6): Parsed {
  let rest = text;
  const fail = (value: string, element: string): Error =>
    new Error(`parsing time ${quote(text)} as ${quote(layout)}: cannot parse ${quote(value)} as ${quote(element)}`);
  const range = (what: string): Error => new Error(`parsing time ${quote(text)}: ${what} out of range`);
  const number = (length: number, element: string): number => {
    const part = rest.slice(0, length);
    if (part.length < length || !digits.test(part)) throw fail(rest, element);
    rest = rest.slice(length);
    return Number(part);
  };
  const literal = (char: string): void => {
    if (rest[0] !== char) throw fail(rest, char);
    rest = rest.slice(1);
  };
  const year = number(4, "2006");
  literal("-");
  const month = number(2, "01");
  if (month < 1 || month > 12) throw range("month");
  literal("-");
  const day = number(2, "02");
  literal("T");
  const hour = number(2, "15");
  if (hour > 23) throw range("hour");
  literal(":");
  const minute = number(2, "04");
  if (minute > 59) throw range("minute");
  literal(":");
  const second = number(2, "05");
  if (second > 59) throw range("second");
  let micros = 0;
  if (fraction === 6) {
    const match = /^\.\d{6}/.exec(rest);
    if (match === null) throw fail(rest, ".000000");
    micros = Number(match[0].slice(1));
    rest = rest.slice(7);
  } else {
    const match = /^\.\d+/.exec(rest);
    if (match !== null) rest = rest.slice(match[0].length);
  }
  const offsetMinutes = zone();
  if (rest !== "") throw new Error(`parsing time ${quote(text)}: extra text: ${quote(rest)}`);
  if (day < 1 || day > daysIn(year, month)) throw range("day");
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute - offsetMinutes, second);
  return { ms: date.getTime(), micros };

  function zone(): number {
    if (rest[0] === "Z") {
      rest = rest.slice(1);
      return 0;
    }
    const match = /^([+-])(\d\d):(\d\d)/.exec(rest);
    if (match === null) throw fail(rest, "Z07:00");
    rest = rest.slice(6);
    const minutes = Number(match[2]) * 60 + Number(match[3]);
    return match[1] === "-" ? -minutes : minutes;
  }
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

function quote(text: string): string {
  return JSON.stringify(text);
}
