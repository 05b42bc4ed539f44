import { setOwn } from "@coxswain/apimachinery/objects/codec/json-parse";
import { valuesPerStep } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { LimitRange, ResourceList } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";

/** Derives default and defaultRequest of containers. Source: pkg/apis/core/v1/defaults.go SetDefaults_LimitRangeItem */
export function defaultLimitRange(object: LimitRange): void {
  atOnce(defaultLimitRangeInSteps(object));
}

/** As `defaultLimitRange`, for many resources. */
export function* defaultLimitRangeInSteps(object: LimitRange): Steps<void> {
  for (const item of object.spec?.limits ?? []) {
    if (item.type !== "Container") continue;
    item.default ??= {};
    yield* addMissing(item.default, item.max);
    item.defaultRequest ??= {};
    yield* addMissing(item.defaultRequest, item.default);
    yield* addMissing(item.defaultRequest, item.min);
  }
}

function* addMissing(list: ResourceList, from: ResourceList | undefined): Steps<void> {
  const names = Object.keys(from ?? {});
  for (const [i, name] of names.entries()) {
    if (i % valuesPerStep === valuesPerStep - 1) yield;
    if (!Object.hasOwn(list, name)) setOwn(list, name, from?.[name]);
  }
}
