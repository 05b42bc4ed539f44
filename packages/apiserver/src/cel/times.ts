/**
 * Durations and timestamps: parsing, formatting, arithmetic and accessors.
 * Source: cel-go v0.9 common/types/{duration,timestamp,overflow}.go; Go's time package
 */
import { parseZonedTime } from "@coxswain/apimachinery/objects/meta/time";
import { Duration, Failure, mostInt, Timestamp } from "./values.ts";

const nanosPerSecond = 1_000_000_000n;

/** Years 1 to 9999, in seconds since the epoch. */
const earliest = -62_135_596_800n;
const latest = 253_402_300_799n;

export const intOverflow = new Failure("integer overflow");
const timestampOverflow = new Failure("timestamp overflow");

/** @returns a Failure when the duration exceeds 64 bits of nanoseconds */
export function durationOf(nanos: bigint): Duration | Failure {
  return nanos > mostInt || nanos < -mostInt - 1n ? intOverflow : new Duration(nanos);
}

/** @returns a Failure for a time outside of the years 1 to 9999 */
export function timestampOf(seconds: bigint, nanos = 0, offsetSeconds = 0): Timestamp | Failure {
  return seconds < earliest || seconds > latest ? timestampOverflow : new Timestamp(seconds, nanos, offsetSeconds);
}

/** Nanoseconds since the epoch. */
export function nanosOf({ seconds, nanos }: Timestamp): bigint {
  return seconds * nanosPerSecond + BigInt(nanos);
}

/** @returns a Failure outside of the years 1 to 9999 */
export function addDuration(time: Timestamp, { nanos }: Duration): Timestamp | Failure {
  const sum = nanosOf(time) + nanos;
  const rest = ((sum % nanosPerSecond) + nanosPerSecond) % nanosPerSecond;
  return timestampOf((sum - rest) / nanosPerSecond, Number(rest), time.offsetSeconds);
}

/** Formats a duration: `90.5s`. */
export function formatSeconds(nanos: bigint): string {
  const size = nanos < 0n ? -nanos : nanos;
  const fraction = String(size % nanosPerSecond)
    .padStart(9, "0")
    .replace(/0+$/, "");
  return `${nanos < 0n ? "-" : ""}${size / nanosPerSecond}${fraction === "" ? "" : `.${fraction}`}s`;
}

const units: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  "\u00b5s": 1_000n,
  "\u03bcs": 1_000n,
  ms: 1_000_000n,
  s: nanosPerSecond,
  m: 60n * nanosPerSecond,
  h: 3600n * nanosPerSecond,
};

const durationPart = /([0-9]*)(?:\.([0-9]*))?([^0-9.]+)/y;

/** Parses `1h30m`, `-1.5s`, `0`. @returns nanoseconds; undefined when invalid or out of range. Source: time.ParseDuration */
export function parseDuration(text: string): bigint | undefined {
  const [, sign = "", parts = ""] = /^([+-]?)(.*)$/s.exec(text) ?? [];
  if (parts === "0") return 0n;
  let nanos = 0n;
  durationPart.lastIndex = 0;
  do {
    const from = durationPart.lastIndex;
    const [match, whole = "", fraction = "", name = ""] = durationPart.exec(parts) ?? [];
    const unit = Object.hasOwn(units, name) ? units[name] : undefined;
    if (match === undefined || unit === undefined || (whole === "" && fraction === "")) return undefined;
    if (whole.replace(/^0+/, "").length > 19) return undefined; // more than 64 bits
    const digits = fraction.slice(0, 18);
    nanos += BigInt(whole || "0") * unit + (BigInt(digits || "0") * unit) / 10n ** BigInt(digits.length);
    durationPart.lastIndex = from + match.length;
  } while (durationPart.lastIndex < parts.length);
  const signed = sign === "-" ? -nanos : nanos;
  return signed > mostInt || signed < -mostInt - 1n ? undefined : signed;
}

/** Parses RFC 3339. @returns undefined for invalid text; a Failure when out of range */
export function parseTimestamp(text: string): Timestamp | Failure | undefined {
  const time = parseZonedTime(text);
  return time && timestampOf(BigInt(time.seconds), Number(time.fraction.padEnd(9, "0").slice(0, 9)), time.offsetSeconds);
}

/** RFC 3339, in the UTC offset of the timestamp. */
export function formatTimestamp(time: Timestamp): string {
  const { nanos, offsetSeconds } = time;
  const fraction = String(nanos).padStart(9, "0").replace(/0+$/, "");
  const minutes = Math.floor(Math.abs(offsetSeconds) / 60);
  const two = (value: number): string => String(value).padStart(2, "0");
  const zone =
    offsetSeconds === 0 ? "Z" : `${offsetSeconds < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
  const date = localDate(time, offsetSeconds);
  const year = String(date.getUTCFullYear()).padStart(4, "0");
  return `${year}${date.toISOString().slice(-20, -5)}${fraction === "" ? "" : `.${fraction}`}${zone}`;
}

function localDate({ seconds }: Timestamp, offsetSeconds: number): Date {
  return new Date((Number(seconds) + offsetSeconds) * 1000);
}

const msPerDay = 86_400_000;

/** Accessors by method name. Months, and days of the month except for getDate, count from 0. */
export const partsOfTimes: Readonly<Record<string, (date: Date, nanos: number) => number>> = {
  getFullYear: (date) => date.getUTCFullYear(),
  getMonth: (date) => date.getUTCMonth(),
  getDayOfYear: (date) => Math.floor((date.getTime() - startOfYear(date)) / msPerDay),
  getDayOfMonth: (date) => date.getUTCDate() - 1,
  getDate: (date) => date.getUTCDate(),
  getDayOfWeek: (date) => date.getUTCDay(),
  getHours: (date) => date.getUTCHours(),
  getMinutes: (date) => date.getUTCMinutes(),
  getSeconds: (date) => date.getUTCSeconds(),
  getMilliseconds: (_date, nanos) => Math.floor(nanos / 1_000_000),
};

function startOfYear(date: Date): number {
  return new Date(0).setUTCFullYear(date.getUTCFullYear(), 0, 1);
}

/** Unit in nanoseconds of each duration accessor; the result is truncated. */
export const partsOfDurations: Readonly<Record<string, bigint>> = {
  getHours: 3600n * nanosPerSecond,
  getMinutes: 60n * nanosPerSecond,
  getSeconds: nanosPerSecond,
  getMilliseconds: 1_000_000n,
};

/** @param zone `Europe/Berlin`, `+01:00`; undefined for the UTC offset of the timestamp @returns a Failure for an unknown zone */
export function partOfTime(method: string, time: Timestamp, zone: string | undefined): bigint | Failure {
  const offset = zone === undefined ? time.offsetSeconds : offsetIn(zone, time);
  if (offset instanceof Failure) return offset;
  return BigInt(partsOfTimes[method]!(localDate(time, offset), time.nanos));
}

function offsetIn(zone: string, time: Timestamp): number | Failure {
  const colon = zone.indexOf(":");
  if (colon < 0) return namedOffset(zone, time);
  const [hours, minutes] = [zone.slice(0, colon), zone.slice(colon + 1)];
  for (const text of [hours, minutes])
    if (!/^[+-]?[0-9]{1,9}$/.test(text)) return new Failure(`strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`);
  return (Number(hours) * 60 + (zone.startsWith("-") ? -Number(minutes) : Number(minutes))) * 60;
}

function namedOffset(zone: string, time: Timestamp): number | Failure {
  if (zone === "" || zone === "UTC" || zone === "Local") return 0;
  if (/^[+-]/.test(zone)) return new Failure(`unknown time zone ${zone}`);
  try {
    const format = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" });
    const name = format.formatToParts(localDate(time, 0)).find(({ type }) => type === "timeZoneName")?.value ?? "";
    const [, sign, hours = "0", minutes = "0", seconds = "0"] = /([+-])(\d+):(\d+)(?::(\d+))?/.exec(name) ?? [];
    return (sign === "-" ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds));
  } catch {
    return new Failure(`unknown time zone ${zone}`);
  }
}
