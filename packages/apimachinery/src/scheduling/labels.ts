/** The value of a label. Inherited properties are no strings: `constructor` is a legal label key. */
export function labelOf(labels: Readonly<Record<string, string>> | undefined, key: string): string | undefined {
  const value: unknown = labels?.[key];
  return typeof value === "string" ? value : undefined;
}
