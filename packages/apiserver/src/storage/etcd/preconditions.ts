import type { Entry, UpdateOptions } from "../storage.ts";

/**
 * Why a write with preconditions is refused, in upstream's words; undefined when they are met.
 * @param current the state that the write replaces; undefined: absent, which has neither uid nor resourceVersion
 */
export function preconditionProblem(current: Entry | undefined, wanted: UpdateOptions["preconditions"]): string | undefined {
  if (wanted === undefined) return undefined;
  const uid = current?.object().metadata.uid ?? "";
  if (wanted.uid !== undefined && wanted.uid !== uid) {
    return `Precondition failed: UID in precondition: ${wanted.uid}, UID in object meta: ${uid}`;
  }
  const revision = current === undefined ? "" : String(current.revision);
  if (wanted.resourceVersion !== undefined && wanted.resourceVersion !== revision) {
    return `Precondition failed: ResourceVersion in precondition: ${wanted.resourceVersion}, ResourceVersion in object meta: ${revision}`;
  }
  return undefined;
}
