/** What the clocks on the wall show somewhere. */
export interface TimeZone {
  /** What to add to a time, in ms since the epoch, to have the clock on the wall. */
  offsetMs(time: number): number;
}

/** This process' own, from the environment's TZ. */
export const localTimeZone: TimeZone = { offsetMs: (time) => -new Date(time).getTimezoneOffset() * 60_000 };

const utc: TimeZone = { offsetMs: () => 0 };

/** @returns undefined for names that the IANA database does not have, in this spelling. Source: Go time.LoadLocation */
export function loadTimeZone(name: string): TimeZone | undefined {
  if (name === "" || name === "UTC") return utc;
  if (name === "Local") return localTimeZone;
  const format = formatOf(name);
  if (format === undefined) return undefined;
  return {
    offsetMs(time) {
      const shown = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, Number(value)]));
      const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = shown;
      return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(time / 1000) * 1000;
    },
  };
}

function formatOf(name: string): Intl.DateTimeFormat | undefined {
  if (!/^[A-Za-z]/.test(name)) return undefined; // `+01:00` is no name
  try {
    const format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
    const known = format.resolvedOptions().timeZone;
    // Where it is no alias, upper and lower case can be told to be wrong.
    return known !== name && known.toLowerCase() === name.toLowerCase() ? undefined : format;
  } catch {
    return undefined;
  }
}
