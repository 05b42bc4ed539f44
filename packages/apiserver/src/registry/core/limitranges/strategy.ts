import { randomUUID } from "node:crypto";
import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { duplicate, forbiddenField, invalidValue, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import type { LimitRange, LimitRangeItem, ResourceList } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { quantityOf } from "../../field-checks.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { checkResourceName } from "../pods/validation/resources.ts";

/** Source: pkg/registry/core/limitrange/strategy.go, pkg/apis/core/validation ValidateLimitRange */
export const limitRangeStrategy: Strategy<LimitRange> = {
  namespaceScoped: true,
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: true,
  prepareForCreate(next) {
    if (!next.metadata.name) next.metadata.name = randomUUID();
  },
  validate: (next) => validateLimitRange(next),
  validateUpdate: (next) => validateLimitRange(next),
};

function validateLimitRange(range: LimitRange): FieldError[] {
  const errors: FieldError[] = [];
  const types = new Set<string>();
  for (const [i, item] of (range.spec?.limits ?? []).entries()) {
    const at = index("spec.limits", i);
    if (types.has(item.type)) errors.push(duplicate(child(at, "type"), item.type));
    types.add(item.type);
    errors.push(...validateItem(item, at));
  }
  return errors;
}

function validateItem(item: LimitRangeItem, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const lists = {
    max: item.max,
    min: item.min,
    default: item.default,
    defaultRequest: item.defaultRequest,
    maxLimitRequestRatio: item.maxLimitRequestRatio,
  };
  if (!item.type) errors.push(required(child(path, "type"), ""));
  if (item.type === "Pod") {
    if (Object.keys(item.default ?? {}).length > 0)
      errors.push(forbiddenField(child(path, "default"), "may not be specified when `type` is 'Pod'"));
    if (Object.keys(item.defaultRequest ?? {}).length > 0) {
      errors.push(forbiddenField(child(path, "defaultRequest"), "may not be specified when `type` is 'Pod'"));
    }
  }
  if (item.type === "PersistentVolumeClaim" && item.min?.storage === undefined && item.max?.storage === undefined) {
    errors.push(required(child(path, "limits"), "either minimum or maximum storage value is required, but neither was provided"));
  }
  const names = new Set<string>();
  for (const [field, list] of Object.entries(lists)) {
    for (const name of Object.keys(list ?? {})) {
      errors.push(...checkResourceName(name, `${child(path, field)}[${name}]`));
      names.add(name);
    }
  }
  for (const name of names) errors.push(...validateOrder(item, name, path));
  return errors;
}

/** min ≤ defaultRequest ≤ default ≤ max, for one resource. */
function validateOrder(item: LimitRangeItem, name: string, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const of = (list: ResourceList | undefined) =>
    list && Object.hasOwn(list, name) ? quantityOf(list[name] as string) : undefined;
  const [min, max, normal, request, ratio] = [
    of(item.min),
    of(item.max),
    of(item.default),
    of(item.defaultRequest),
    of(item.maxLimitRequestRatio),
  ];
  const above = (a: ReturnType<typeof of>, b: ReturnType<typeof of>): boolean =>
    a !== undefined && b !== undefined && a.cmp(b) > 0;
  const at = (field: string): string => `${child(path, field)}[${name}]`;
  if (above(min, max)) errors.push(invalidValue(at("min"), min?.toString(), `min value ${min} is greater than max value ${max}`));
  if (above(min, request)) {
    errors.push(
      invalidValue(
        at("defaultRequest"),
        request?.toString(),
        `min value ${min} is greater than default request value ${request}`,
      ),
    );
  }
  if (above(request, max)) {
    errors.push(
      invalidValue(
        at("defaultRequest"),
        request?.toString(),
        `default request value ${request} is greater than max value ${max}`,
      ),
    );
  }
  if (above(request, normal)) {
    errors.push(
      invalidValue(
        at("defaultRequest"),
        request?.toString(),
        `default request value ${request} is greater than default limit value ${normal}`,
      ),
    );
  }
  if (above(min, normal))
    errors.push(invalidValue(at("default"), min?.toString(), `min value ${min} is greater than default value ${normal}`));
  if (above(normal, max))
    errors.push(invalidValue(at("default"), max?.toString(), `default value ${normal} is greater than max value ${max}`));
  if (ratio && ratio.milliValue() < 1000)
    errors.push(invalidValue(at("maxLimitRequestRatio"), ratio.toString(), `ratio ${ratio} is less than 1`));
  if (ratio && min && max && min.sign > 0) {
    const most = max.milliValue() / min.milliValue();
    if (ratio.milliValue() / 1000 > most) {
      errors.push(
        invalidValue(at("maxLimitRequestRatio"), ratio.toString(), `ratio ${ratio} is greater than max/min = ${most.toFixed(6)}`),
      );
    }
  }
  return errors;
}
