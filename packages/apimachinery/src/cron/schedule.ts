import type { TimeZone } from "./time-zone.ts";

/** When something is due. Times are in ms since the epoch, on whole seconds. */
export interface Schedule {
  /** The first time after this one; undefined when there is none within five years. */
  next(after: number): number | undefined;
}

/** The values of one field; `star` when it leaves the choice of days to the other field. */
export interface Field {
  readonly values: ReadonlySet<number>;
  readonly star: boolean;
}

export interface ScheduleFields {
  readonly minute: Field;
  readonly hour: Field;
  readonly dayOfMonth: Field;
  readonly month: Field;
  readonly dayOfWeek: Field;
}

const secondMs = 1000;
const minuteMs = 60_000;
const hourMs = 3_600_000;

/** Due again and again after the same time, a second at least; by whole seconds. Source: constantdelay.go */
export function everySchedule(durationMs: number): Schedule {
  const delay = Math.max(1, Math.floor(durationMs / secondMs)) * secondMs;
  return { next: (after) => floorTo(after, secondMs) + delay };
}

/** One step of the search: goes on by one of its units until the time matches. */
interface Unit {
  matches(at: Civil): boolean;
  /** The beginning of the unit; asked for once, when the search leaves the time that it began with. */
  start(time: number): number;
  step(time: number): number;
  /** A larger unit changed too, and has to be looked at again. */
  wrapped(at: Civil): boolean;
}

/**
 * Due whenever all fields match the clock on the wall. Month, day, hour, minute and second are gone through in this
 * order and advanced until they match; what happens at changes of the clock follows from that: what is due in an hour
 * that is left out is not due on that day, what is due in one that comes twice is due twice.
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
        // Where the clock changes at midnight there may be none: back or on to the hour next to it.
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
  const impossible = [month, hour, minute].some(({ values }) => values.size === 0);
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

/** A star in one field leaves the days to the other; with two restrictions one is enough. */
function dayMatches({ dayOfMonth, dayOfWeek }: ScheduleFields, at: Civil): boolean {
  const [ofMonth, ofWeek] = [dayOfMonth.values.has(at.day), dayOfWeek.values.has(at.weekday)];
  return dayOfMonth.star || dayOfWeek.star ? ofMonth && ofWeek : ofMonth || ofWeek;
}

/** What calendar and clock on the wall show. */
interface Civil {
  readonly year: number;
  /** From 1. */
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
  /** Months and days beyond their end go on into the next. A time that the clock skips becomes one beside the gap. */
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
      // The offset is asked for at a time that is off by itself, and once more at the one that results. Source: Go time.Date
      return wall - zone.offsetMs(wall - zone.offsetMs(wall));
    },
  };
}

function floorTo(time: number, unitMs: number): number {
  return Math.floor(time / unitMs) * unitMs;
}
