import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { forbiddenField, invalidValue, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index } from "@coxswain/apimachinery/errors/field-path";
import type {
  ExecAction,
  GRPCAction,
  HTTPGetAction,
  LifecycleHandler,
  Probe,
  TCPSocketAction,
} from "@coxswain/apimachinery/schema/kinds/core/v1";
import { checkPort, checkPortNumOrName, isHttpHeaderName, nonNegative, oneOf } from "../../../field-checks.ts";

/** Source: pkg/apis/core/validation validateProbe, validateHandler */
export function validateProbe(probe: Probe | undefined | null, path: string): FieldError[] {
  if (!probe) return [];
  const errors = validateHandler(probe, path);
  for (const field of [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
  ] as const) {
    errors.push(...nonNegative(probe[field], child(path, field)));
  }
  const grace = probe.terminationGracePeriodSeconds;
  if (grace !== undefined && grace !== null && grace <= 0) {
    errors.push(invalidValue(child(path, "terminationGracePeriodSeconds"), grace, "must be greater than 0"));
  }
  return errors;
}

/** Liveness and startup probes pass or fail at once. */
export function validateLivenessProbe(probe: Probe | undefined | null, path: string): FieldError[] {
  const errors = validateProbe(probe, path);
  if (probe && probe.successThreshold !== 1)
    errors.push(invalidValue(child(path, "successThreshold"), probe.successThreshold ?? 0, "must be 1"));
  return errors;
}

export function validateReadinessProbe(probe: Probe | undefined | null, path: string): FieldError[] {
  const errors = validateProbe(probe, path);
  const grace = probe?.terminationGracePeriodSeconds;
  if (grace !== undefined && grace !== null) {
    errors.push(invalidValue(child(path, "terminationGracePeriodSeconds"), grace, "must not be set for readinessProbes"));
  }
  return errors;
}

interface Handler {
  exec?: ExecAction;
  httpGet?: HTTPGetAction;
  tcpSocket?: TCPSocketAction;
  grpc?: GRPCAction;
}

export function validateLifecycleHandler(handler: LifecycleHandler, path: string): FieldError[] {
  return validateHandler(handler, path);
}

function validateHandler(handler: Handler, path: string): FieldError[] {
  const errors: FieldError[] = [];
  let count = 0;
  const only = (field: string): boolean => {
    count++;
    if (count === 1) return true;
    errors.push(forbiddenField(child(path, field), "may not specify more than 1 handler type"));
    return false;
  };
  if (handler.exec && only("exec") && !handler.exec.command?.length) errors.push(required(child(path, "exec", "command")));
  if (handler.httpGet && only("httpGet")) errors.push(...validateHttpGet(handler.httpGet, child(path, "httpGet")));
  if (handler.tcpSocket && only("tcpSocket"))
    errors.push(...checkPortNumOrName(handler.tcpSocket.port, child(path, "tcpSocket", "port")));
  if (handler.grpc && only("grpc")) errors.push(...checkPort(handler.grpc.port, child(path, "grpc", "port")));
  if (count === 0) errors.push(required(path, "must specify a handler type"));
  return errors;
}

function validateHttpGet(action: HTTPGetAction, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!action.path) errors.push(required(child(path, "path")));
  errors.push(...checkPortNumOrName(action.port, child(path, "port")));
  errors.push(...oneOf(action.scheme ?? "", ["HTTP", "HTTPS"], child(path, "scheme")));
  for (const [i, header] of (action.httpHeaders ?? []).entries()) {
    for (const message of isHttpHeaderName(header.name ?? "")) {
      errors.push(invalidValue(index(child(path, "httpHeaders"), i), header.name ?? "", message));
    }
  }
  return errors;
}
