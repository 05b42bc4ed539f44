/** The value of a label; keys come from users, and `constructor` is a legal one that no node has by birth. */
export function labelOf(labels: Readonly<Record<string, string>> | undefined, key: string): string | undefined {
  return labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
}
