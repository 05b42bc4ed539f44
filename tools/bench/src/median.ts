/** The lower of the two in the middle of an even number. @throws Error without values */
export function median(values: readonly number[]): number {
  const value = values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)];
  if (value === undefined) throw new Error("a median needs at least one value");
  return value;
}
