import { goQuote } from "../objects/meta/go-quote.ts";
import { durationRefusal, parseDuration } from "../objects/meta/time.ts";
import { everySchedule, type Field, fieldsSchedule, type Schedule } from "./schedule.ts";
import { loadTimeZone, localTimeZone } from "./time-zone.ts";

/**
 * Parses a cron schedule: minute, hour, day of month, month, day of week; or a descriptor such as `@daily` or
 * `@every 1h30m`. The prefix `TZ=Europe/Berlin ` or `CRON_TZ=…` sets the time zone; the default is the local zone.
 * Runs in linear time.
 * @throws Error with upstream's text
 * Source: github.com/robfig/cron/v3 v3.0.1, ParseStandard
 */
export function parseSchedule(text: string): Schedule {
  if (text === "") throw new Error("empty spec string");
  let spec = text;
  let zone = localTimeZone;
  if (spec.startsWith("TZ=") || spec.startsWith("CRON_TZ=")) {
    const space = spec.indexOf(" ");
    const end = space < 0 ? spec.length : space;
    const name = spec.slice(spec.indexOf("=") + 1, end);
    const named = loadTimeZone(name);
    if (named === undefined) throw new Error(`provided bad location ${name}: unknown time zone ${name}`);
    zone = named;
    spec = spec.slice(end).trim();
  }
  if (spec.startsWith("@")) {
    if (spec.startsWith(every)) return everySchedule(everyMs(spec));
    const fields = descriptors.get(spec);
    if (fields === undefined) throw new Error(`unrecognized descriptor: ${spec}`);
    return parseFields(fields, zone);
  }
  return parseFields(spec, zone);
}

const every = "@every ";

function everyMs(spec: string): number {
  const duration = spec.slice(every.length);
  const ms = parseDuration(duration);
  if (ms === undefined) throw new Error(`failed to parse duration ${spec}: ${durationRefusal(duration)}`);
  return ms;
}

const descriptors: ReadonlyMap<string, string> = new Map([
  ["@yearly", "0 0 1 1 *"],
  ["@annually", "0 0 1 1 *"],
  ["@monthly", "0 0 1 * *"],
  ["@weekly", "0 0 * * 0"],
  ["@daily", "0 0 * * *"],
  ["@midnight", "0 0 * * *"],
  ["@hourly", "0 * * * *"],
]);

interface Bounds {
  readonly min: number;
  readonly max: number;
  /** Names of the values, starting with that of `min`. */
  readonly names?: readonly string[];
}

const minutes: Bounds = { min: 0, max: 59 };
const hours: Bounds = { min: 0, max: 23 };
const daysOfMonth: Bounds = { min: 1, max: 31 };
const months: Bounds = {
  min: 1,
  max: 12,
  names: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const daysOfWeek: Bounds = { min: 0, max: 6, names: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

function parseFields(spec: string, zone: typeof localTimeZone): Schedule {
  const fields = spec.split(/\s/).filter((field) => field !== "");
  if (fields.length !== 5) throw new Error(`expected exactly 5 fields, found ${fields.length}: [${fields.join(" ")}]`);
  const [minute = "", hour = "", dayOfMonth = "", month = "", dayOfWeek = ""] = fields;
  return fieldsSchedule(
    {
      minute: parseField(minute, minutes),
      hour: parseField(hour, hours),
      dayOfMonth: parseField(dayOfMonth, daysOfMonth),
      month: parseField(month, months),
      dayOfWeek: parseField(dayOfWeek, daysOfWeek),
    },
    zone,
  );
}

function parseField(text: string, bounds: Bounds): Field {
  const values = new Set<number>();
  let star = false;
  for (const part of text.split(",")) {
    if (part === "") continue; // empty list items are ignored
    const range = parseRange(part, bounds);
    for (let value = range.start; value <= range.end; value += range.step) values.add(value);
    star ||= range.star;
  }
  return { values, star };
}

/** `*`, `5`, `5-10`, each with optional `/step`; `5/10` extends to the maximum. A star with a step > 1 is not a star. */
function parseRange(part: string, bounds: Bounds): { start: number; end: number; step: number; star: boolean } {
  const [range = "", stepText, ...moreSteps] = part.split("/");
  const [first = "", last, ...moreEnds] = range.split("-");
  let { min: start, max: end } = bounds;
  let star = first === "*" || first === "?";
  if (!star) {
    start = parseValue(first, bounds);
    if (moreEnds.length > 0) throw new Error(`too many hyphens: ${part}`);
    end = last === undefined ? start : parseValue(last, bounds);
  }
  let step = 1;
  if (moreSteps.length > 0) throw new Error(`too many slashes: ${part}`);
  if (stepText !== undefined) {
    step = parseNumber(stepText);
    if (last === undefined) end = bounds.max;
    if (step > 1) star = false;
  }
  if (start < bounds.min) throw new Error(`beginning of range (${start}) below minimum (${bounds.min}): ${part}`);
  if (end > bounds.max) throw new Error(`end of range (${end}) above maximum (${bounds.max}): ${part}`);
  if (start > end) throw new Error(`beginning of range (${start}) beyond end of range (${end}): ${part}`);
  if (step === 0) throw new Error(`step of range should be a positive number: ${part}`);
  return { start, end, step, star };
}

function parseValue(text: string, { min, names = [] }: Bounds): number {
  const named = names.indexOf(text.toLowerCase());
  return named >= 0 ? min + named : parseNumber(text);
}

/** As Go's strconv.Atoi, but rejects negative numbers. */
function parseNumber(text: string): number {
  const refusal = (why: string): Error =>
    new Error(`failed to parse int from ${text}: strconv.Atoi: parsing ${goQuote(text)}: ${why}`);
  if (!/^[+-]?\d+$/.test(text)) throw refusal("invalid syntax");
  const value = Number(text);
  if (Math.abs(value) >= 2 ** 63) throw refusal("value out of range");
  if (value < 0) throw new Error(`negative number (${value}) not allowed: ${text}`);
  return value;
}
