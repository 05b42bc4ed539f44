/** Annotation: pods of a ReplicaSet with a lower cost are deleted first. */
export const deletionCost = "controller.kubernetes.io/pod-deletion-cost";

/** @returns the error text for an invalid deletion cost; undefined when it is valid or absent */
export function podDeletionCostFault(annotations: Readonly<Record<string, string>> | undefined | null): string | undefined {
  if (!annotations || !Object.hasOwn(annotations, deletionCost)) return undefined;
  const value = annotations[deletionCost]!;
  const cost = /^(0|-?[1-9][0-9]*|-0+[0-9]*)$/.test(value) ? Number(value) : Number.NaN;
  return cost >= -(2 ** 31) && cost < 2 ** 31 ? undefined : `invalid value ${JSON.stringify(value)}`;
}
