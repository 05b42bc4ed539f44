/** A time zone. */
export interface TimeZone {
  /** Offset from UTC in ms at a time in ms since the Unix epoch. */
  offsetMs(time: number): number;
}

/** The local zone of the process, from the environment variable TZ. */
export const localTimeZone: TimeZone = { offsetMs: (time) => -new Date(time).getTimezoneOffset() * 60_000 };

const utc: TimeZone = { offsetMs: () => 0 };

/** @returns undefined for names not in the IANA database; names are case-sensitive. Source: Go time.LoadLocation */
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
  if (!/^[A-Za-z]/.test(name)) return undefined; // offsets like `+01:00` are not zone names
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
    // Intl ignores case, Go does not. For aliases the canonical name differs altogether, so wrong case is not noticed.
    return known !== name && known.toLowerCase() === name.toLowerCase() ? undefined : format;
  } catch {
    return undefined;
  }
}
