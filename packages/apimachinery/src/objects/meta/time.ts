import { goQuote } from "./go-quote.ts";

/** RFC 3339 in UTC with whole seconds, the format of metav1.Time. @param ms since the Unix epoch */
export function formatTime(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  if (seconds !== lastSeconds) {
    lastText = `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;
    lastSeconds = seconds;
  }
  return lastText;
}

/** Cache of the last result: most formatted times are the current time. */
let lastSeconds = Number.NaN;
let lastText = "";

/** RFC 3339 in UTC with six fractional digits, the format of metav1.MicroTime. @param ms since the Unix epoch, with fraction */
export function formatMicroTime(ms: number): string {
  const whole = Math.floor(ms);
  const micros = Math.floor((ms - whole) * 1000);
  return `${new Date(whole).toISOString().slice(0, 23)}${String(micros).padStart(3, "0")}Z`;
}

const rfc3339 = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:Z|([+-])(\d{2}):(\d{2}))$/;

/** A parsed time with its zone offset. */
interface ZonedTime {
  /** Whole seconds since the Unix epoch. */
  readonly seconds: number;
  /** The fractional digits as written; `""` for none. */
  readonly fraction: string;
  /** Offset east of UTC. */
  readonly offsetSeconds: number;
}

/** @returns undefined for a text that is not an RFC 3339 time. Source: Go time.Parse with time.RFC3339 */
export function parseZonedTime(text: string): ZonedTime | undefined {
  const match = rfc3339.exec(text);
  if (match === null) return undefined;
  // Cast: the expression has these groups.
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 59)
    return undefined;
  const [hours, minutes] = [Number(match[9] ?? 0), Number(match[10] ?? 0)];
  if (hours > 24 || minutes >= 60) return undefined;
  const date = new Date(Date.UTC(2000, month - 1, day, hour, minute, second));
  // Date.UTC maps years below 100 to 19xx, so the year is set separately. The leap year 2000 allows February 29 until then.
  date.setUTCFullYear(year, month - 1, day);
  const offsetSeconds = (match[8] === "-" ? -60 : 60) * (hours * 60 + minutes);
  return { seconds: date.getTime() / 1000 - offsetSeconds, fraction: match[7] ?? "", offsetSeconds };
}

/** @returns ms since the Unix epoch with microsecond resolution; undefined for a text that is not an RFC 3339 time */
export function parseTime(text: string): number | undefined {
  return parsePlainTime(text) ?? parseAnyTime(text);
}

/**
 * Reads the form of almost all times in objects, `2006-01-02T15:04:05Z`, without the objects that a regular expression's match
 * creates: sorting Pods parses thousands.
 * @returns undefined for any other text, valid or not
 */
function parsePlainTime(text: string): number | undefined {
  if (
    text.length !== 20 ||
    text[4] !== "-" ||
    text[7] !== "-" ||
    text[10] !== "T" ||
    text[13] !== ":" ||
    text[16] !== ":" ||
    text[19] !== "Z"
  )
    return undefined;
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2);
  const [month, day] = [twoDigits(text, 5), twoDigits(text, 8)];
  const [hour, minute, second] = [twoDigits(text, 11), twoDigits(text, 14), twoDigits(text, 17)];
  // Written so that NaN fails. Date.UTC maps years below 100 to 19xx.
  const isValid =
    year >= 100 &&
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    day <= daysIn(year, month) &&
    hour <= 23 &&
    minute <= 59 &&
    second <= 59;
  return isValid ? Date.UTC(year, month - 1, day, hour, minute, second) : undefined;
}

/** @returns NaN unless there are two digits */
function twoDigits(text: string, at: number): number {
  const [tens, ones] = [text.charCodeAt(at) - 0x30, text.charCodeAt(at + 1) - 0x30];
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}

function parseAnyTime(text: string): number | undefined {
  const time = parseZonedTime(text);
  return time && time.seconds * 1000 + Number(time.fraction.padEnd(6, "0").slice(0, 6)) / 1000;
}

function daysIn(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** Formats a duration in ms like Go: `1m0s`, `1.5s`, `300ms`, `0s`. Source: Go time.Duration.String */
export function formatDuration(ms: number): string {
  const sign = ms < 0 ? "-" : "";
  const absolute = Math.abs(ms);
  const wholeMs = Math.trunc(absolute);
  const nanos = BigInt(wholeMs) * 1_000_000n + BigInt(Math.round((absolute - wholeMs) * 1e6));
  if (nanos === 0n) return "0s";
  if (nanos < 1_000n) return `${sign}${nanos}ns`;
  if (nanos < 1_000_000n) return `${sign}${withFraction(nanos, 3)}µs`;
  if (nanos < 1_000_000_000n) return `${sign}${withFraction(nanos, 6)}ms`;
  const minutes = nanos / 60_000_000_000n;
  const seconds = `${withFraction(nanos % 60_000_000_000n, 9)}s`;
  if (minutes === 0n) return sign + seconds;
  return minutes < 60n ? `${sign}${minutes}m${seconds}` : `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`;
}

function withFraction(value: bigint, digits: number): string {
  const unit = 10n ** BigInt(digits);
  const fraction = (value % unit).toString().padStart(digits, "0").replace(/0+$/, "");
  return fraction === "" ? `${value / unit}` : `${value / unit}.${fraction}`;
}

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};
const durationForm = /^[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+$/;
const durationPart = /([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)/g;

/** @returns milliseconds with fraction; undefined for a text that Go rejects. Source: Go time.ParseDuration */
export function parseDuration(text: string): number | undefined {
  if (text === "0" || text === "+0" || text === "-0") return 0;
  if (text.length > 200 || !durationForm.test(text)) return undefined;
  let total = 0;
  for (const [, number, unit] of text.matchAll(durationPart)) total += Number(number) * unitMs[unit!]!;
  if (total > 9_223_372_036_854.775) return undefined; // beyond 2^63 nanoseconds
  return text.startsWith("-") ? -total : total;
}

/** Go's error text for a duration that `parseDuration` rejects. Source: Go time.ParseDuration */
export function durationRefusal(text: string): string {
  let rest = text.replace(/^[+-]/, "");
  while (rest !== "") {
    const number = /^(?:\d+(?:\.\d*)?|\.\d+)/.exec(rest)?.[0];
    if (number === undefined) break;
    rest = rest.slice(number.length);
    const unit = /^[^.\d]*/.exec(rest)?.[0] ?? "";
    if (unit === "") return `time: missing unit in duration ${goQuote(text)}`;
    if (!Object.hasOwn(unitMs, unit)) return `time: unknown unit ${goQuote(unit)} in duration ${goQuote(text)}`;
    rest = rest.slice(unit.length);
  }
  return `time: invalid duration ${goQuote(text)}`;
}

/** Formats an age like kubectl: `5d3h`, `118s`, `<invalid>` for the future. Source: duration.HumanDuration */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000);
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.trunc(seconds / 60);
  if (minutes < 10) return two(minutes, "m", seconds % 60, "s");
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.trunc(minutes / 60);
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  const days = Math.trunc(hours / 24);
  if (hours < 192) return two(days, "d", hours % 24, "h");
  if (hours < 24 * 365 * 2) return `${days}d`;
  const years = Math.trunc(days / 365);
  return hours < 24 * 365 * 8 ? two(years, "y", days % 365, "d") : `${years}y`;
}

const two = (big: number, bigUnit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${big}${bigUnit}` : `${big}${bigUnit}${small}${smallUnit}`;
