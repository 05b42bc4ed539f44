/** Directives of strategic merge patches. Source: apimachinery pkg/util/strategicpatch/patch.go, pkg/util/mergepatch/errors.go */
import { badRequest } from "../errors/status-error.ts";
import { goKind, goStringText, goText } from "./go-text.ts";

export type Fields = Record<string, unknown>;

/** Directive of an object or list element: `replace`, `delete` or `merge`. */
export const patchDirective = "$patch";
export const retainKeysDirective = "$retainKeys";
export const deleteDirective = "$deleteFromPrimitiveList";
export const orderDirective = "$setElementOrder";

/** The field name of a directive key: `finalizers` for `$setElementOrder/finalizers`. @throws StatusError 400 without a name */
export function fieldOf(key: string, directive: string): string {
  if (key.startsWith(`${directive}/`)) return key.slice(directive.length + 1);
  throw badRequest(`invalid patch format of ${directive === deleteDirective ? "primitive" : "setElementOrder"} list`);
}

/** Error for an unknown value of `$patch`. */
export function badPatchType(directive: unknown, patch: Fields): Error {
  return new Error(`unknown patch type: ${goStringText(directive)} in map: ${goText(patch)}`);
}

/** True for JSON objects, which are maps in Go. */
export function isObject(value: unknown): value is Fields {
  return goKind(value) === "map";
}
