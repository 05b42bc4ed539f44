import type { Answer } from "./client.ts";
import type { Step } from "./requests.ts";

/** Subresources proxied to a node or pod, whose 5xx responses are not the API server's. */
const connected: ReadonlySet<string> = new Set(["proxy", "exec", "attach", "portforward", "log"]);

/** @returns what is wrong with the response, or undefined. */
export function complaintAbout(step: Step, answer: Answer): string | undefined {
  const status = isProtobuf(answer) ? protobufStatus(answer.text) : parsed(answer.text);
  if (answer.code >= 500 && !isByDesign(step, answer.code, status)) return `${answer.code}: ${answer.text.slice(0, 500)}`;
  // Odd paths, methods and protocols are rejected at various layers, not always with a Status.
  if (step.quality === "odd") return undefined;
  if (answer.code < 400 || connected.has(step.resource.subresource)) return undefined;
  if (isProtobuf(answer)) return answer.text.startsWith("k8s\u0000") ? undefined : "an error in protobuf without its envelope";
  if (status?.["kind"] === "Table") return "an error as a Table";
  if (status?.["kind"] !== "Status" || status["status"] !== "Failure") {
    return `${answer.code} without a Status: ${JSON.stringify(answer.text.slice(0, 300))}`;
  }
  if (status["code"] !== answer.code) return `the Status says ${status["code"]}, the answer ${answer.code}`;
  if (answer.code < 500 && (typeof status["reason"] !== "string" || status["reason"] === ""))
    return `no reason: ${answer.text.slice(0, 300)}`;
  return undefined;
}

/** 5xx responses that upstream also returns for client errors, by message. */
const byDesign: readonly { readonly code: number; readonly message: RegExp }[] = [
  // Waiting for a future resource version times out.
  { code: 504, message: /Too large resource version/ },
  { code: 500, message: /more than one PodDisruptionBudget/ },
  // Server-side apply returns 500 for objects that do not match the schema.
  { code: 500, message: /^failed to (create typed (patch|new|live) object|convert new object to proper version)/ },
  { code: 500, message: /^failed to create manager for existing fields/ },
  { code: 500, message: /^Internal error occurred: .*associative list with keys has an element that omits key field/ },
  { code: 500, message: /^failed to prune fields/ },
  // Bindings are validated without an error reason.
  { code: 500, message: /^\[?target\.(kind|name): / },
  { code: 500, message: /^Component not found: / },
  // Upstream maps these client errors to 500: invalid resource versions, bodies that are not DeleteOptions, and strategic
  // merge patches that do not fit their lists.
  { code: 500, message: /strconv\.ParseUint: parsing / },
  { code: 500, message: /^(couldn't get version\/kind; json parse error|unexpected GroupVersion string): / },
  { code: 500, message: /^(no kind ".*" is registered for version|converting \(.*\) to \(v1\.DeleteOptions\))/ },
  { code: 500, message: /^json: cannot unmarshal .* into Go struct field \w+\.[\w.]+ of type / },
  { code: 500, message: /^unable to decode (the protobuf envelope|DeleteOptions): / },
  { code: 500, message: /^(proto: |unexpected EOF$)/ },
  { code: 500, message: /^(yaml: |error converting YAML to JSON|provided data does not appear to be a protobuf message)/ },
  {
    code: 500,
    message:
      /does not contain declared merge key|^expecting an element to be |doesn't match \$setElementOrder list|^cannot merge lists /,
  },
];

function isByDesign(step: Step, code: number, status: Record<string, unknown> | undefined): boolean {
  if (connected.has(step.resource.subresource)) return true;
  const message = String(status?.["message"]);
  return byDesign.some((known) => known.code === code && known.message.test(message));
}

function isProtobuf(answer: Answer): boolean {
  return String(answer.headers["content-type"]).startsWith("application/vnd.kubernetes.protobuf");
}

/** Parses a Status as JSON, or as simple YAML. */
function parsed(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>; // cast: callers take every field for unknown
  } catch {
    // Long strings continue on indented lines.
    const value = (name: string): string | undefined =>
      new RegExp(`^${name}: (.*(?:\\n +.*)*)$`, "m").exec(text)?.[1]?.replaceAll(/\n +/g, " ");
    const { kind, status, reason, code } = {
      kind: value("kind"),
      status: value("status"),
      reason: value("reason"),
      code: value("code"),
    };
    const message = value("message")
      ?.replace(/^["']|["']$/g, "")
      .replaceAll("''", "'");
    return kind === undefined ? undefined : { kind, status, reason, message, code: Number(code) };
  }
}

/** Extracts the message (field 3) of a protobuf Status, located by the preceding status "Failure". */
function protobufStatus(text: string): Record<string, unknown> | undefined {
  const at = text.indexOf("\u0012\u0007Failure\u001a");
  if (at < 0) return undefined;
  // The length takes one or two bytes. Trailing bytes do not matter, since messages are matched at their beginning.
  const begin = at + (text.charCodeAt(at + 10) < 0x80 ? 11 : 12);
  return { message: text.slice(begin) };
}
