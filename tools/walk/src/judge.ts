import type { Answer } from "./client.ts";
import type { Step } from "./requests.ts";

/** Subresources whose answers come from a node or a pod, which may not be there: 5xx is theirs. */
const connected: ReadonlySet<string> = new Set(["proxy", "exec", "attach", "portforward", "log"]);

/** @returns what is wrong with the answer, or undefined. */
export function complaintAbout(step: Step, answer: Answer): string | undefined {
  const status = parsed(answer.text);
  if (answer.code >= 500 && !isByDesign(step, answer.code, status)) return `${answer.code}: ${answer.text.slice(0, 500)}`;
  if (answer.code < 400 || connected.has(step.resource.subresource)) return undefined;
  if (isProtobuf(answer)) return answer.text.startsWith("k8s\u0000") ? undefined : "an error in protobuf without its envelope";
  if (status?.["kind"] === "Table") return "an error as a Table";
  if (status?.["kind"] !== "Status" || status["status"] !== "Failure") {
    return `${answer.code} without a Status: ${JSON.stringify(answer.text.slice(0, 300))}`;
  }
  if (status["code"] !== answer.code) return `the Status says ${status["code"]}, the answer ${answer.code}`;
  if (typeof status["reason"] !== "string" || status["reason"] === "") return `no reason: ${answer.text.slice(0, 300)}`;
  return undefined;
}

/** A version from the future is waited for and then answered with 504; a Pod with two budgets cannot be evicted: 500. */
function isByDesign(step: Step, code: number, status: Record<string, unknown> | undefined): boolean {
  if (connected.has(step.resource.subresource)) return true;
  const message = String(status?.["message"]);
  return code === 504 ? message.includes("Too large resource version") : message.includes("more than one PodDisruptionBudget");
}

function isProtobuf(answer: Answer): boolean {
  return String(answer.headers["content-type"]).startsWith("application/vnd.kubernetes.protobuf");
}

/** JSON, or the few lines of YAML that a Status is. */
function parsed(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    const line = (name: string): string | undefined => new RegExp(`^${name}: (.*)$`, "m").exec(text)?.[1];
    const { kind, status, reason, code } = {
      kind: line("kind"),
      status: line("status"),
      reason: line("reason"),
      code: line("code"),
    };
    return kind === undefined ? undefined : { kind, status, reason, code: Number(code) };
  }
}
