/**
 * Whether a text is a cron schedule: five fields, or a descriptor such as `@daily` or `@every 1h`. Only the form is
 * checked here; when a schedule is due is the controller's business.
 * Source: github.com/robfig/cron/v3 ParseStandard
 */
export function scheduleError(schedule: string): string | undefined {
  let text = schedule;
  if (text === "") return "empty spec string";
  const zone = /^(?:CRON_)?TZ=([^ ]*)(?: (.*))?$/.exec(text);
  if (zone) {
    const name = zone[1] ?? "";
    if (!isTimeZone(name)) return `provided bad location ${name}: unknown time zone ${name}`;
    text = (zone[2] ?? "").trim();
  }
  if (text.startsWith("@")) return descriptorError(text);
  const fields = text.split(/\s+/).filter((field) => field !== "");
  if (fields.length !== 5) return `expected exactly 5 fields, found ${fields.length}: [${fields.join(" ")}]`;
  for (const [i, field] of fields.entries()) {
    for (const part of field.split(",")) {
      const error = rangeError(part, bounds[i] as Bounds);
      if (error !== undefined) return error;
    }
  }
  return undefined;
}

interface Bounds {
  min: number;
  max: number;
  names?: Readonly<Record<string, number>>;
}

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const bounds: readonly Bounds[] = [
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, names: Object.fromEntries(months.map((name, i) => [name, i + 1])) },
  { min: 0, max: 6, names: Object.fromEntries(days.map((name, i) => [name, i])) },
];

function rangeError(part: string, { min, max, names }: Bounds): string | undefined {
  const slashes = part.split("/");
  const ends = (slashes[0] ?? "").split("-");
  let start = min;
  let end = max;
  if (ends[0] !== "*" && ends[0] !== "?") {
    const first = number(ends[0] ?? "", names);
    if (typeof first === "string") return first;
    start = first;
    if (ends.length === 1) end = slashes.length > 1 ? max : start;
    else if (ends.length === 2) {
      const last = number(ends[1] ?? "", names);
      if (typeof last === "string") return last;
      end = last;
    } else return `too many hyphens: ${part}`;
  }
  if (slashes.length > 2) return `too many slashes: ${part}`;
  if (slashes.length === 2) {
    const step = number(slashes[1] ?? "", undefined);
    if (typeof step === "string") return step;
    if (step === 0) return `step of range should be a positive number: ${part}`;
  }
  if (start < min) return `beginning of range (${start}) below minimum (${min}): ${part}`;
  if (end > max) return `end of range (${end}) above maximum (${max}): ${part}`;
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${part}`;
  return undefined;
}

function number(text: string, names: Readonly<Record<string, number>> | undefined): number | string {
  const lower = text.toLowerCase();
  if (names && Object.hasOwn(names, lower)) return names[lower] as number;
  if (!/^[+-]?\d{1,15}$/.test(text))
    return `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`;
  const value = Number(text);
  return value < 0 ? `negative number (${value}) not allowed: ${text}` : value;
}

const descriptors = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

function descriptorError(text: string): string | undefined {
  if (descriptors.includes(text)) return undefined;
  if (text.startsWith("@every ")) {
    const duration = text.slice("@every ".length);
    return /^[+-]?(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+$/.test(duration)
      ? undefined
      : `failed to parse duration ${text}: time: invalid duration ${JSON.stringify(duration)}`;
  }
  return `unrecognized descriptor: ${text}`;
}

function isTimeZone(name: string): boolean {
  if (name === "" || name === "UTC" || name === "Local") return true;
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
