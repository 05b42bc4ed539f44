/** Checks shared by pods and containers. */
import { child, type FieldError, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import { GoText } from "@coxswain/apimachinery/objects/errors/go-syntax";
import type { SELinuxOptions } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { IDRange } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1beta1";
import type { Policy } from "./mutate.ts";

/** `[{1 10}]`: Go's formatting of a slice of ranges. */
export function rangesText(ranges: readonly IDRange[]): string {
  return `[${ranges.map(({ min, max }) => `{${min} ${max}}`).join(" ")}]`;
}

/** Whether a range contains the ID, including both ends; false without ranges. */
export function isInRanges(id: number, ranges: readonly IDRange[]): boolean {
  return ranges.some(({ min, max }) => id >= min && id <= max);
}

/** Validates group IDs against a MustRunAs or MayRunAs rule; other rules allow all groups. */
export function groupErrors(
  options: { readonly rule?: string; readonly ranges?: readonly IDRange[] } | undefined,
  path: string,
  groups: readonly number[],
): FieldError[] {
  const { rule, ranges = [] } = options ?? {};
  if (rule !== "MustRunAs" && rule !== "MayRunAs") return [];
  const shown = new GoText(groups.length === 0 ? "[]int64(nil)" : `[]int64{${groups.join(", ")}}`);
  if (groups.length === 0 && rule === "MustRunAs") {
    return [invalidValue(path, shown, "unable to validate empty groups against required ranges")];
  }
  return groups
    .filter((group) => !isInRanges(group, ranges))
    .map((group) => invalidValue(path, shown, `group ${group} must be in the ranges: ${rangesText(ranges)}`));
}

/** Compares MCS levels regardless of the order of categories: `s0:c1,c2` equals `s0:c2,c1`. */
function isSameLevel(a: string, b: string): boolean {
  const sorted = (level: string): string => {
    const at = level.indexOf(":");
    if (at < 0) return level;
    return `${level.slice(0, at)}:${level
      .slice(at + 1)
      .split(",")
      .sort()
      .join(",")}`;
  };
  return sorted(a) === sorted(b);
}

/** Validates SELinux options; with the rule MustRunAs all four must equal those of the policy. */
export function labelErrors({ spec: { seLinux } }: Policy, path: string, had: SELinuxOptions | undefined): FieldError[] {
  if (seLinux.rule !== "MustRunAs") return [];
  if (had === undefined) return [required(path)];
  const wanted = seLinux.seLinuxOptions ?? {};
  return (["level", "role", "type", "user"] as const).flatMap((field) => {
    const [is, must] = [had[field] ?? "", wanted[field] ?? ""];
    const same = field === "level" ? isSameLevel(must, is) : must === is;
    return same ? [] : [invalidValue(child(path, field), is, `must be ${must}`)];
  });
}
