import { formatDuration } from "../objects/meta/time.ts";

/** The names of a setting: on the command line, in the configuration file, or both. */
interface SettingNames {
  readonly flag?: string;
  readonly field?: string;
}

/** A constraint on the value of a setting. */
export interface Rule<T> {
  /** The constructor's name. */
  readonly kind: string;
  /** The allowed range, for the documentation: `0 to 100`. */
  readonly allowed: string;
  /** @returns upstream's error text; undefined for a valid value */
  problem(value: T, names: SettingNames): string | undefined;
}

/** `port (--port)`, or the only name. */
export const nameOf = ({ field, flag }: SettingNames): string =>
  field === undefined ? `--${flag}` : flag === undefined ? field : `${field} (--${flag})`;

/** Both limits are inclusive. */
export const between = (min: number, max: number): Rule<number> => ({
  kind: "between",
  allowed: `${min} to ${max}`,
  problem: (value, names) =>
    value >= min && value <= max ? undefined : `${nameOf(names)} ${value} must be between ${min} and ${max}, inclusive`,
});

export const notNegative: Rule<number> = {
  kind: "notNegative",
  allowed: "0 or more",
  problem: (value, names) => (value < 0 ? `${nameOf(names)} ${value} must not be a negative number` : undefined),
};

/** For fields of a configuration file without a flag: the error names only the field. */
export const atLeast = (min: number): Rule<number> => ({
  kind: "atLeast",
  allowed: `${min} or more`,
  problem: (value, { field }) => (value < min ? `${field} must be >= ${min}` : undefined),
});

/** @param problem upstream's text, which differs by field; `value` is quoted */
export const oneOf = (values: readonly string[], problem: (value: string, name: string) => string): Rule<string> => ({
  kind: "oneOf",
  allowed: values.join(", "),
  problem: (value, names) => (values.includes(value) ? undefined : problem(JSON.stringify(value), nameOf(names))),
});

/** Go's format of a metav1.Duration, a struct. */
export const goDuration = (ms: number): string => `{${formatDuration(ms)}}`;

/** @param text of the two limits, as the error has them */
export const durationBetween = (minMs: number, maxMs: number, text: readonly [string, string]): Rule<number> => ({
  kind: "durationBetween",
  allowed: text.join(" to "),
  problem: (ms, names) =>
    ms >= minMs && ms <= maxMs
      ? undefined
      : `${nameOf(names)} ${goDuration(ms)} must be between ${text.join(" and ")}, inclusive`,
});

/** More than 0 and at most 1. */
export const fraction: Rule<number> = {
  kind: "fraction",
  allowed: "more than 0, at most 1",
  problem: (value, names) =>
    value > 0 && value <= 1 ? undefined : `${nameOf(names)} ${value} must be greater than 0 and less than or equal to 1.0`,
};

/** A rule with a specific text. @param problem upstream's text; `name` is that of the flag, of the field or both */
export const rule = <T>(allowed: string, holds: (value: T) => boolean, problem: (value: T, name: string) => string): Rule<T> => ({
  kind: "rule",
  allowed,
  problem: (value, names) => (holds(value) ? undefined : problem(value, nameOf(names))),
});
