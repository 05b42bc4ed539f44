/** What a strategic merge patch says besides values. Source: apimachinery pkg/util/strategicpatch/patch.go, pkg/util/mergepatch/errors.go */
import { badRequest } from "../errors/status-error.ts";
import { goKind, goStringText, goText } from "./go-text.ts";

export type Fields = Record<string, unknown>;

/** In an object or an element: `replace`, `delete`, `merge`. */
export const patchDirective = "$patch";
export const retainKeysDirective = "$retainKeys";
export const deleteDirective = "$deleteFromPrimitiveList";
export const orderDirective = "$setElementOrder";
export const deletePrefix = `${deleteDirective}/`;
export const orderPrefix = `${orderDirective}/`;

/** @returns `finalizers` of `$setElementOrder/finalizers` */
export function fieldOf(key: string, directive: string): string {
  if (key.startsWith(`${directive}/`)) return key.slice(directive.length + 1);
  throw badRequest(`invalid patch format of ${directive === deleteDirective ? "primitive" : "setElementOrder"} list`);
}

export function badPatchType(directive: unknown, patch: Fields): Error {
  return new Error(`unknown patch type: ${goStringText(directive)} in map: ${goText(patch)}`);
}

export function isObject(value: unknown): value is Fields {
  return goKind(value) === "map";
}
