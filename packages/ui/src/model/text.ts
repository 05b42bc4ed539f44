/** Formats numbers and times. */

/** `45s`, `7m`, `3h`, `12d`: in the largest unit that fits. */
export function age(fromMs: number, nowMs: number): string {
  if (fromMs === 0) return "–";
  const seconds = Math.max(0, Math.floor((nowMs - fromMs) / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}h` : `${Math.floor(hours / 24)}d`;
}

/** `250m`, `1.5`, `12` cores. */
export function cores(milli: number): string {
  if (milli < 1000) return `${Math.round(milli)}m`;
  return milli < 10_000 ? (milli / 1000).toFixed(1).replace(/\.0$/, "") : String(Math.round(milli / 1000));
}

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** `512 MiB`, `1.5 GiB` */
export function size(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  const text = value < 10 && unit > 0 ? value.toFixed(1).replace(/\.0$/, "") : String(Math.round(value));
  return `${text} ${units[unit]}`;
}

export const percent = (part: number, whole: number): number =>
  whole <= 0 ? 0 : Math.min(100, Math.round((part / whole) * 100));

/** `1 pod`, `3 pods` */
export const counted = (count: number, noun: string): string => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

/** `12:05:31` */
export const clockTime = (ms: number): string => new Date(ms).toLocaleTimeString("en-GB");
