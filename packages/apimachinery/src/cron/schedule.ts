import type { TimeZone } from "./time-zone.ts";

/** A recurring schedule. Times are in ms since the Unix epoch, at whole seconds. */
export interface Schedule {
  /** The first time after the given one; undefined when there is none within five years. */
  next(after: number): number | undefined;
}

/** The allowed values of a field; `star` when it was written as `*` or `?`, see `dayMatches`. */
export interface Field {
  readonly values: ReadonlySet<number>;
  readonly star: boolean;
}

interface ScheduleFields {
  readonly minute: Field;
  readonly hour: Field;
  readonly dayOfMonth: Field;
  readonly month: Field;
  readonly dayOfWeek: Field;
}

const secondMs = 1000;
const minuteMs = 60_000;
const hourMs = 3_600_000;

/** A schedule with constant delay, rounded down to whole seconds, at least one second. Source: constantdelay.go */
export function everySchedule(durationMs: number): Schedule {
  const delay = Math.max(1, Math.floor(durationMs / secondMs)) * secondMs;
  return { next: (after) => floorTo(after, secondMs) + delay };
}

/** A calendar unit; the search advances it until the time matches. */
interface Unit {
  matches(at: Civil): boolean;
  /** Truncates the time to the unit. Applied once, when the search first advances. */
  start(time: number): number;
  step(time: number): number;
  /** A larger unit has changed, too, and has to be checked again. */
  wrapped(at: Civil): boolean;
}

/**
 * A schedule that matches when all fields match the local time. The search advances month, day, hour, minute and second,
 * in this order, until they match. As a consequence, times in an hour skipped by a DST change are not due on that day, and
 * times in a repeated hour are due twice.
 * Source: spec.go, SpecSchedule.Next
 */
export function fieldsSchedule(fields: ScheduleFields, zone: TimeZone): Schedule {
  const calendar = newCalendar(zone);
  const { month, hour, minute } = fields;
  const units: readonly Unit[] = [
    {
      matches: (at) => month.values.has(at.month),
      start: (time) => calendar.timeOf({ ...calendar.at(time), day: 1, ...midnight }),
      step(time) {
        const at = calendar.at(time);
        return calendar.timeOf({ ...at, month: at.month + 1 });
      },
      wrapped: (at) => at.month === 1,
    },
    {
      matches: (at) => dayMatches(fields, at),
      start: (time) => calendar.timeOf({ ...calendar.at(time), ...midnight }),
      step(time) {
        const at = calendar.at(time);
        const next = calendar.timeOf({ ...at, day: at.day + 1 });
        // A DST change at midnight can skip it: use the nearest hour instead.
        const { hour: reached } = calendar.at(next);
        return next + (reached > 12 ? 24 - reached : -reached) * hourMs;
      },
      wrapped: (at) => at.day === 1,
    },
    {
      matches: (at) => hour.values.has(at.hour),
      start: (time) => calendar.timeOf({ ...calendar.at(time), minute: 0, second: 0 }),
      step: (time) => time + hourMs,
      wrapped: (at) => at.hour === 0,
    },
    {
      matches: (at) => minute.values.has(at.minute),
      start: (time) => floorTo(time, minuteMs),
      step: (time) => time + minuteMs,
      wrapped: (at) => at.minute === 0,
    },
    {
      matches: (at) => at.second === 0,
      start: (time) => time,
      step: (time) => time + (60 - calendar.at(time).second) * secondMs,
      wrapped: () => true,
    },
  ];
  const impossible = [month, hour, minute].some(({ values }) => values.size === 0) || !hasDay(fields);
  return { next: (after) => (impossible ? undefined : search(units, calendar, floorTo(after, secondMs) + secondMs)) };
}

function search(units: readonly Unit[], calendar: Calendar, from: number): number | undefined {
  let time = from;
  let moved = false;
  const lastYear = calendar.at(time).year + 5;
  again: while (calendar.at(time).year <= lastYear) {
    for (const unit of units) {
      while (!unit.matches(calendar.at(time))) {
        if (!moved) time = unit.start(time);
        moved = true;
        time = unit.step(time);
        if (unit.wrapped(calendar.at(time))) continue again;
      }
    }
    return time;
  }
  return undefined;
}

const longestMonths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** False for days that no month has, such as 30 February. A search for them would take milliseconds, in another zone ten. */
function hasDay({ dayOfMonth, dayOfWeek, month }: ScheduleFields): boolean {
  if (!dayOfMonth.star && !dayOfWeek.star) return true;
  const longest = Math.max(...[...month.values].map((number) => longestMonths[number - 1] ?? 0));
  return [...dayOfMonth.values].some((day) => day <= longest);
}

/** If either field is a star, both have to match (a star always does); if both are restricted, one match suffices. */
function dayMatches({ dayOfMonth, dayOfWeek }: ScheduleFields, at: Civil): boolean {
  const [ofMonth, ofWeek] = [dayOfMonth.values.has(at.day), dayOfWeek.values.has(at.weekday)];
  return dayOfMonth.star || dayOfWeek.star ? ofMonth && ofWeek : ofMonth || ofWeek;
}

/** Local date and time. */
interface Civil {
  readonly year: number;
  /** 1 to 12. */
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  /** 0: Sunday. */
  readonly weekday: number;
}

const midnight = { hour: 0, minute: 0, second: 0 };

interface Calendar {
  at(time: number): Civil;
  /** Normalizes months and days out of range. A local time skipped by a DST change becomes one next to the gap. */
  timeOf(civil: Civil): number;
}

function newCalendar(zone: TimeZone): Calendar {
  return {
    at(time) {
      const wall = new Date(time + zone.offsetMs(time));
      return {
        year: wall.getUTCFullYear(),
        month: wall.getUTCMonth() + 1,
        day: wall.getUTCDate(),
        hour: wall.getUTCHours(),
        minute: wall.getUTCMinutes(),
        second: wall.getUTCSeconds(),
        weekday: wall.getUTCDay(),
      };
    },
    timeOf({ year, month, day, hour, minute, second }) {
      const wall = Date.UTC(year, month - 1, day, hour, minute, second);
      // First guess with the offset at the local time taken as UTC, then correct with the offset at that guess.
      // Source: Go time.Date
      return wall - zone.offsetMs(wall - zone.offsetMs(wall));
    },
  };
}

function floorTo(time: number, unitMs: number): number {
  return Math.floor(time / unitMs) * unitMs;
}
