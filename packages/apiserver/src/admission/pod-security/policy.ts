/** What a namespace's labels ask for. Source: k8s.io/pod-security-admission api/helpers.go, constants.go */
import { duplicate, type FieldError, formatFieldError, invalidValue } from "@coxswain/apimachinery/errors/field-error";
import { mapKey } from "@coxswain/apimachinery/errors/field-path";
import { isDns1123Label, isDns1123Subdomain } from "@coxswain/apimachinery/validation/dns";
import type { Level } from "./checks.ts";

export interface LevelVersion {
  readonly level: Level;
  /** `latest` or `v1.23`, as error texts show it. */
  readonly version: string;
}

export interface Policy {
  readonly enforce: LevelVersion;
  readonly warn: LevelVersion;
  readonly audit: LevelVersion;
}

/** Of labels, and of audit annotations. */
export const prefix = "pod-security.kubernetes.io/";
/** From the laxest to the strictest. */
export const levels: readonly string[] = ["privileged", "baseline", "restricted"];
const modes = ["enforce", "audit", "warn"] as const;
export const latestMinor = 23;

/** What counts where labels say nothing. */
const privilegedPolicy: Policy = {
  enforce: { level: "privileged", version: "latest" },
  warn: { level: "privileged", version: "latest" },
  audit: { level: "privileged", version: "latest" },
};

/** @param errors gets what is wrong with the labels; a wrong level counts as the strictest for enforce, else as none. */
export function policyOf(
  labels: Readonly<Record<string, string>>,
  errors: FieldError[] = [],
  defaults: Policy = privilegedPolicy,
): Policy {
  const read = (mode: (typeof modes)[number]): LevelVersion => {
    const level = Object.hasOwn(labels, prefix + mode) ? labels[prefix + mode] : undefined;
    const version = Object.hasOwn(labels, `${prefix}${mode}-version`) ? labels[`${prefix}${mode}-version`] : undefined;
    const at = (key: string): string => mapKey("metadata.labels", key);
    const known = level === undefined || levels.includes(level);
    if (!known) errors.push(invalidValue(at(prefix + mode), level, "must be one of privileged, baseline, restricted"));
    const goodVersion = version === undefined || version === "latest" || /^v1\.\d{1,5}$/.test(version);
    if (!goodVersion) errors.push(invalidValue(at(`${prefix}${mode}-version`), version, 'must be "latest" or "v1.x"'));
    const fallback: Level = mode === "enforce" && !known ? "restricted" : "privileged";
    return {
      level: known ? ((level ?? defaults[mode].level) as Level) : fallback,
      version: goodVersion ? (version ?? defaults[mode].version) : "latest",
    };
  };
  const enforce = read("enforce");
  const audit = read("audit");
  return { enforce, audit, warn: read("warn") };
}

export interface PodSecurityConfiguration {
  readonly defaults: Policy;
  readonly exemptions: {
    readonly usernames: ReadonlySet<string>;
    readonly namespaces: ReadonlySet<string>;
    readonly runtimeClasses: ReadonlySet<string>;
  };
}

/** @throws Error with the first thing that is wrong. Source: k8s.io/pod-security-admission admission/api/validation */
export function readPodSecurityConfiguration(value: unknown): PodSecurityConfiguration {
  const { defaults = {}, exemptions = {} } = (value ?? {}) as {
    defaults?: Record<string, string>;
    exemptions?: Record<string, readonly string[] | undefined>;
  };
  const labels = Object.fromEntries(Object.entries(defaults).map(([key, text]) => [prefix + key, text]));
  const errors: FieldError[] = [];
  const policy = policyOf(labels, errors);
  const [problem] = errors;
  if (problem !== undefined) {
    const field = problem.field.slice(mapKey("metadata.labels", prefix).length - 1, -1);
    throw configurationError(invalidValue(`defaults.${field}`, problem.badValue, problem.detail));
  }
  const exempt = (name: string, check: (value: string) => string[]): Set<string> => {
    const values = exemptions[name] ?? [];
    for (const [i, value] of values.entries()) {
      const [first] = check(value);
      const path = `exemptions.${name}[${i}]`;
      if (first !== undefined) throw configurationError(invalidValue(path, value, first));
      if (values.indexOf(value) < i) throw configurationError(duplicate(path, value));
    }
    return new Set(values);
  };
  return {
    defaults: policy,
    exemptions: {
      usernames: exempt("usernames", (value) => (value === "" ? ["username must not be empty"] : [])),
      namespaces: exempt("namespaces", isDns1123Label),
      runtimeClasses: exempt("runtimeClasses", isDns1123Subdomain),
    },
  };
}

function configurationError(error: FieldError): Error {
  return new Error(formatFieldError(error));
}

export function minorOf(version: string): number {
  return version === "latest" ? latestMinor : Math.min(Number(version.slice("v1.".length)), latestMinor);
}
