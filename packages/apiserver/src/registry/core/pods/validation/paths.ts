import { type FieldError, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";

/** Relative paths inside volumes and containers. Source: pkg/apis/core/validation validateLocalNonReservedPath */
export function localNonReservedPath(target: string, path: string): FieldError[] {
  const errors = localDescendingPath(target, path);
  if (target.startsWith("..") && !target.startsWith("../")) errors.push(invalidValue(path, target, "must not start with '..'"));
  return errors;
}

/** Errors for an absolute path and for `..` as an element. */
export function localDescendingPath(target: string, path: string): FieldError[] {
  const errors = target.startsWith("/") ? [invalidValue(path, target, "must be a relative path")] : [];
  return [...errors, ...withoutBacksteps(target, path)];
}

/** Errors for a path with `..` as an element. */
export function withoutBacksteps(target: string, path: string): FieldError[] {
  return target.split("/").includes("..") ? [invalidValue(path, target, "must not contain '..'")] : [];
}
