/** Pod Security policy of a namespace, from its labels. Source: k8s.io/pod-security-admission api/helpers.go, constants.go */
import {
  duplicate,
  type FieldError,
  formatFieldError,
  invalidValue,
  mapKey,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { dns1123LabelProblems, dns1123SubdomainProblems } from "@coxswain/apimachinery/objects/validation/dns";
import type { Level } from "./checks.ts";

export interface LevelVersion {
  readonly level: Level;
  /** `latest` or `v1.23`, as shown in error texts. */
  readonly version: string;
}

export interface Policy {
  readonly enforce: LevelVersion;
  readonly warn: LevelVersion;
  readonly audit: LevelVersion;
}

/** Prefix of labels and audit annotations. */
export const prefix = "pod-security.kubernetes.io/";
/** From least to most restrictive. */
export const levels: readonly Level[] = ["privileged", "baseline", "restricted"];
const modes = ["enforce", "audit", "warn"] as const;
export const latestMinor = 23;

/** Default for namespaces without labels. */
const privilegedPolicy: Policy = {
  enforce: { level: "privileged", version: "latest" },
  warn: { level: "privileged", version: "latest" },
  audit: { level: "privileged", version: "latest" },
};

/**
 * @param errors receives errors in the labels. An invalid level counts as restricted for enforce and as privileged for the
 *   other modes.
 */
export function policyOf(
  labels: Readonly<Record<string, string>>,
  errors: FieldError[] = [],
  defaults: Policy = privilegedPolicy,
): Policy {
  const read = (mode: (typeof modes)[number]): LevelVersion => {
    const level = Object.hasOwn(labels, prefix + mode) ? labels[prefix + mode] : undefined;
    const version = Object.hasOwn(labels, `${prefix}${mode}-version`) ? labels[`${prefix}${mode}-version`] : undefined;
    const at = (key: string): string => mapKey("metadata.labels", key);
    const known = level === undefined ? defaults[mode].level : levels.find((one) => one === level);
    if (known === undefined)
      errors.push(invalidValue(at(prefix + mode), level, "must be one of privileged, baseline, restricted"));
    const goodVersion = version === undefined || version === "latest" || /^v1\.\d{1,5}$/.test(version);
    if (!goodVersion) errors.push(invalidValue(at(`${prefix}${mode}-version`), version, 'must be "latest" or "v1.x"'));
    const fallback: Level = mode === "enforce" && known === undefined ? "restricted" : "privileged";
    return {
      level: known ?? fallback,
      version: goodVersion ? (version ?? defaults[mode].version) : "latest",
    };
  };
  const enforce = read("enforce");
  const audit = read("audit");
  return { enforce, audit, warn: read("warn") };
}

interface PodSecurityConfiguration {
  readonly defaults: Policy;
  readonly exemptions: {
    readonly usernames: ReadonlySet<string>;
    readonly namespaces: ReadonlySet<string>;
    readonly runtimeClasses: ReadonlySet<string>;
  };
}

/** @throws Error with the first problem. Source: k8s.io/pod-security-admission admission/api/validation */
export function readPodSecurityConfiguration(value: unknown): PodSecurityConfiguration {
  const written = objectAt(value, "configuration");
  const defaults = objectAt(written["defaults"], "defaults");
  const exemptions = objectAt(written["exemptions"], "exemptions");
  const labels = Object.fromEntries(
    Object.entries(defaults).map(([key, text]) => [prefix + key, textAt(text, `defaults.${key}`)]),
  );
  const errors: FieldError[] = [];
  const policy = policyOf(labels, errors);
  const [problem] = errors;
  if (problem !== undefined) {
    const field = problem.field.slice(mapKey("metadata.labels", prefix).length - 1, -1);
    throw configurationError(invalidValue(`defaults.${field}`, problem.badValue, problem.detail));
  }
  const exempt = (name: string, check: (value: string) => string[]): Set<string> => {
    const values = textsAt(exemptions[name], `exemptions.${name}`);
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
      namespaces: exempt("namespaces", dns1123LabelProblems),
      runtimeClasses: exempt("runtimeClasses", dns1123SubdomainProblems),
    },
  };
}

/** Treats an empty section (null) like a missing one. */
function objectAt(value: unknown, path: string): Record<string, unknown> {
  if (value === null || value === undefined) return {};
  if (!isJsonObject(value)) throw new Error(`${path}: must be an object`);
  return value;
}

function textAt(value: unknown, path: string): string {
  if (value === null) return "";
  if (typeof value !== "string") throw new Error(`${path}: must be a string`);
  return value;
}

function textsAt(value: unknown, path: string): string[] {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) throw new Error(`${path}: must be a list of strings`);
  return value.map((item, i) => textAt(item, `${path}[${i}]`));
}

function configurationError(error: FieldError): Error {
  return new Error(formatFieldError(error));
}

/** Minor version of `latest` or `v1.x`; versions newer than this release are treated as the latest. */
export function minorOf(version: string): number {
  return version === "latest" ? latestMinor : Math.min(Number(version.slice("v1.".length)), latestMinor);
}
