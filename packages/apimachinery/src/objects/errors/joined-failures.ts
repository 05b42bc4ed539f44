/**
 * Pure: the text of several failures, each once; several are enclosed in brackets.
 * Source: k8s.io/apimachinery pkg/util/errors Aggregate
 */
export function joinedFailures(failures: readonly string[]): string {
  const texts = [...new Set(failures)];
  return texts.length === 1 ? texts[0]! : `[${texts.join(", ")}]`;
}
