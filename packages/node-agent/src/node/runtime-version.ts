/**
 * The runtime version for the node's status: unchanged when it is a semantic version, else its leading numbers
 * (`1.6.20~ds1` → `1.6.20`); `Unknown` when there are fewer than two.
 * Source: pkg/kubelet/kuberuntime newRuntimeVersion; k8s.io/apimachinery pkg/util/version
 */
export function runtimeVersion(written: string): string {
  const text = written.trim().replace(/^v/, "");
  if (semantic.test(text)) return text;
  const [numbers = ""] = /^[0-9]+(?:\.[0-9]+)*/.exec(text) ?? [];
  const parts = numbers.split(".");
  if (parts.length < 2 || /^0[0-9]/.test(numbers)) return "Unknown";
  return parts.map((part) => part.replace(/^0+(?=[0-9])/, "")).join(".");
}

const number = "(?:0|[1-9][0-9]*)";
const identifiers = (one: string): string => `${one}(?:\\.${one})*`;
const semantic = new RegExp(
  `^${number}\\.${number}\\.${number}(?:-${identifiers(`(?:${number}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)`)})?(?:\\+${identifiers("[0-9A-Za-z-]+")})?$`,
);
