/** For an even number of values the lower of the two middle ones. @throws Error without values */
export function median(values: readonly number[]): number {
  const value = values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)];
  if (value === undefined) throw new Error("a median needs at least one value");
  return value;
}
