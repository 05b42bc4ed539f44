import { child, type FieldError, invalidValue, required } from "@coxswain/apimachinery/objects/errors/field-error";
import type {
  ExecAction,
  GRPCAction,
  HTTPGetAction,
  LifecycleHandler,
  Probe,
  TCPSocketAction,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { checkPort, checkPortNumOrName, httpHeaderNameProblems, nonNegative } from "../../../field-checks.ts";
import { eachInSteps, type Member, need, oneMember, optionalOneOf, saying } from "../../../rules.ts";

const counts = ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] as const;

/** Source: pkg/apis/core/validation validateProbe, validateHandler */
export function* validateProbe(probe: Probe | undefined | null, path: string): Steps<FieldError[]> {
  if (!probe) return [];
  const errors = yield* validateHandler(probe, path);
  for (const field of counts) errors.push(...nonNegative(probe[field], child(path, field)));
  const grace = probe.terminationGracePeriodSeconds;
  if (grace !== undefined && grace !== null && grace <= 0)
    errors.push(invalidValue(child(path, "terminationGracePeriodSeconds"), grace, "must be greater than 0"));
  return errors;
}

/** successThreshold of liveness and startup probes must be 1. */
export function checkSuccessThreshold(probe: Probe | undefined | null, path: string): FieldError[] {
  if (!probe || probe.successThreshold === 1) return [];
  return [invalidValue(child(path, "successThreshold"), probe.successThreshold ?? 0, "must be 1")];
}

/** Readiness probes have no terminationGracePeriodSeconds, because they do not terminate the container. */
export function checkNoGracePeriod(probe: Probe | undefined | null, path: string): FieldError[] {
  const grace = probe?.terminationGracePeriodSeconds;
  if (grace === undefined || grace === null) return [];
  return [invalidValue(child(path, "terminationGracePeriodSeconds"), grace, "must not be set for readinessProbes")];
}

interface Handler {
  exec?: ExecAction;
  httpGet?: HTTPGetAction;
  tcpSocket?: TCPSocketAction;
  grpc?: GRPCAction;
}

const handlers: readonly Member<Handler>[] = [
  { field: "exec", check: ({ exec }, at) => need(exec?.command, child(at, "command")) },
  { field: "httpGet", check: ({ httpGet }, at) => validateHttpGet(httpGet ?? { port: 0 }, at) },
  { field: "tcpSocket", check: ({ tcpSocket }, at) => checkPortNumOrName(tcpSocket?.port, child(at, "port")) },
  { field: "grpc", check: ({ grpc }, at) => checkPort(grpc?.port, child(at, "port")) },
];

/** Exactly one handler is required. */
export function validateLifecycleHandler(handler: LifecycleHandler, path: string): Steps<FieldError[]> {
  return validateHandler(handler, path);
}

function* validateHandler(handler: Handler, path: string): Steps<FieldError[]> {
  const { found, errors } = yield* oneMember(handler, handlers, path, "may not specify more than 1 handler type");
  return found === 0 ? [required(path, "must specify a handler type")] : errors;
}

function* validateHttpGet(action: HTTPGetAction, path: string): Steps<FieldError[]> {
  const headers = child(path, "httpHeaders"); // without the index, like upstream's
  return [
    ...need(action.path, child(path, "path")),
    ...checkPortNumOrName(action.port, child(path, "port")),
    ...optionalOneOf(action.scheme ?? "", ["HTTP", "HTTPS"], child(path, "scheme")),
    ...(yield* eachInSteps(action.httpHeaders, headers, ({ name = "" }) => saying(httpHeaderNameProblems(name), name, headers))),
  ];
}
