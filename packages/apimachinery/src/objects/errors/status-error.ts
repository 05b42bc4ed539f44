import { goQuote } from "../meta/go-quote.ts";
import { formatGroupResource, type GroupResource } from "../meta/group-version.ts";
import type { Status, StatusCause, StatusDetails } from "../meta/types.ts";
import { type FieldError, formatFieldErrors, shownErrors } from "./field-error.ts";
import { messageOf } from "./message.ts";
import { type Reason, reasonCodes } from "./reasons.ts";

/** An error with the Status that the client receives. */
export class StatusError extends Error {
  readonly status: Status;
  /** Additional response headers. */
  headers?: Record<string, string>;

  constructor(status: Status, options?: ErrorOptions) {
    super(status.message ?? "", options);
    this.name = "StatusError";
    this.status = status;
  }

  /** The HTTP status code. */
  get code(): number {
    return this.status.code ?? 500;
  }

  /** `""` when the Status has none. */
  get reason(): string {
    return this.status.reason ?? "";
  }
}

/** The Status in the decoded body of a failed request, if it is one. */
export function failureIn(body: unknown): Status | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const status: Partial<Status> = body;
  if (status.kind !== "Status" || status.status === "Success") return undefined;
  return status as Status; // cast: its readers take every field for optional
}

/** A failure Status, with keys in upstream's order. */
function failure(reason: Reason | "", code: number, message: string, details?: StatusDetails, cause?: unknown): StatusError {
  const status: Status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure" };
  if (message !== "") status.message = message;
  if (reason !== "") status.reason = reason;
  if (details !== undefined) status.details = details;
  status.code = code;
  return new StatusError(status, cause === undefined ? undefined : { cause });
}

const plain = (reason: Reason, message: string, details?: StatusDetails): StatusError =>
  failure(reason, reasonCodes[reason], message, details);

/** Details without empty fields, with keys in upstream's order. */
function detailsOf(parts: {
  name?: string;
  group?: string;
  kind?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
}): StatusDetails {
  const details: StatusDetails = {};
  if (parts.name) details.name = parts.name;
  if (parts.group) details.group = parts.group;
  if (parts.kind) details.kind = parts.kind;
  if (parts.causes !== undefined && parts.causes.length > 0) details.causes = parts.causes;
  if (parts.retryAfterSeconds) details.retryAfterSeconds = parts.retryAfterSeconds;
  return details;
}

const ofResource = (gr: GroupResource, name: string): StatusDetails => detailsOf({ name, group: gr.group, kind: gr.resource });
const named = (gr: GroupResource, name: string): string => `${formatGroupResource(gr)} ${goQuote(name)}`;

/** 404: `pods "web" not found`. @param gr as the URL names it: the resource, not the kind */
export function notFound(gr: GroupResource, name: string): StatusError {
  return plain("NotFound", `${named(gr, name)} not found`, ofResource(gr, name));
}

/** 409 with reason AlreadyExists: `pods "web" already exists`. */
export function alreadyExists(gr: GroupResource, name: string): StatusError {
  return plain("AlreadyExists", `${named(gr, name)} already exists`, ofResource(gr, name));
}

/** All names generated from generateName were taken. */
export function generateNameConflict(gr: GroupResource, name: string, retryAfterSeconds: number): StatusError {
  const message = `${named(gr, name)} already exists, the server was not able to generate a unique name for the object`;
  return plain("AlreadyExists", message, detailsOf({ name, group: gr.group, kind: gr.resource, retryAfterSeconds }));
}

/** The object was changed concurrently, or a precondition failed. */
export function conflict(gr: GroupResource, name: string, message: string): StatusError {
  return plain("Conflict", `Operation cannot be fulfilled on ${named(gr, name)}: ${message}`, ofResource(gr, name));
}

/** Server-side apply conflicts with other managers. @param causes one for each field */
export function applyConflict(causes: StatusCause[], message: string): StatusError {
  return plain("Conflict", message, detailsOf({ causes }));
}

/** 410 with the reason Gone; a resourceVersion or token that is too old is `resourceExpired`. */
export function gone(message: string): StatusError {
  return plain("Gone", message);
}

/** The resourceVersion or continue token is too old; the client has to list again. */
export function resourceExpired(message: string): StatusError {
  return plain("Expired", message);
}

/** Validation failed; each error becomes a cause. */
export function invalid(gk: { group: string; kind: string }, name: string, errors: readonly FieldError[]): StatusError {
  const kind = gk.group === "" ? gk.kind : `${gk.kind}.${gk.group}`;
  const causes = shownErrors(errors).map(({ error, body }) => {
    const cause: StatusCause = { reason: error.type, message: body };
    if (error.field !== "") cause.field = error.field;
    return cause;
  });
  const list = formatFieldErrors(errors);
  const message = `${kind} ${goQuote(name)} is invalid${list === "" ? "" : `: ${list}`}`;
  return plain("Invalid", message, detailsOf({ name, group: gk.group, kind: gk.kind, causes }));
}

/** The request cannot be decoded or contradicts itself; for values of an object's fields use `invalid`. */
export function badRequest(message: string): StatusError {
  return plain("BadRequest", message);
}

/** 401: the request has no credentials, or wrong ones. */
export function unauthorized(message = "Unauthorized"): StatusError {
  return plain("Unauthorized", message);
}

/** @param gr resource `""` for a non-resource path @param message the reason, without the subject */
export function forbidden(gr: GroupResource, name: string, message: string): StatusError {
  const subject = gr.resource === "" ? "forbidden" : `${name === "" ? formatGroupResource(gr) : named(gr, name)} is forbidden`;
  return plain("Forbidden", `${subject}: ${message}`, ofResource(gr, name));
}

/** 405: the resource has no such verb. */
export function methodNotSupported(gr: GroupResource, verb: string): StatusError {
  const message = `${verb} is not supported on resources of kind ${goQuote(formatGroupResource(gr))}`;
  return plain("MethodNotAllowed", message, detailsOf({ group: gr.group, kind: gr.resource }));
}

/** The request was not completed in time; `Timeout: ` is prepended to the message. */
export function timeout(message: string, retryAfterSeconds: number): StatusError {
  return plain("Timeout", `Timeout: ${message}`, detailsOf({ retryAfterSeconds }));
}

/** The operation may or may not have been completed; the client may retry. */
export function serverTimeout(gr: GroupResource, verb: string, retryAfterSeconds: number): StatusError {
  const message = `The ${verb} operation against ${formatGroupResource(gr)} could not be completed at this time, please try again.`;
  return plain("ServerTimeout", message, detailsOf({ name: verb, group: gr.group, kind: gr.resource, retryAfterSeconds }));
}

/** 429; clients wait as long as `Retry-After` says, which the server sets from `retryAfterSeconds`. */
export function tooManyRequests(message: string, retryAfterSeconds: number): StatusError {
  return plain("TooManyRequests", message, detailsOf({ retryAfterSeconds }));
}

/** The requested resourceVersion is newer than the server's data. */
export function tooLargeResourceVersion(requested: number, current: number, retryAfterSeconds: number): StatusError {
  const causes = [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }];
  const message = `Timeout: Too large resource version: ${requested}, current: ${current}`;
  return plain("Timeout", message, detailsOf({ causes, retryAfterSeconds }));
}

/** `Request entity too large: ` is prepended to the message. */
export function requestEntityTooLarge(message: string): StatusError {
  return plain("RequestEntityTooLarge", `Request entity too large: ${message}`);
}

/** 415: the Content-Type of the body. */
export function unsupportedMediaType(message: string): StatusError {
  return plain("UnsupportedMediaType", message);
}

/** 406: the media types of Accept. */
export function notAcceptable(message: string): StatusError {
  return plain("NotAcceptable", message);
}

/** @param err kept as the cause, for logging */
export function internalError(err: unknown): StatusError {
  const text = messageOf(err);
  const details = detailsOf({ causes: [{ message: text }] });
  return failure("InternalError", 500, `Internal error occurred: ${text}`, details, err);
}

/** @param retryAfterSeconds 0 for none */
export function serviceUnavailable(message: string, retryAfterSeconds = 0): StatusError {
  return plain("ServiceUnavailable", message, retryAfterSeconds === 0 ? undefined : detailsOf({ retryAfterSeconds }));
}

/**
 * The error for a response without a Status, for clients and proxies.
 * @param retryAfterSeconds 0 for none
 * @param unexpected an object was expected; adds the server's message as a cause
 * Source: errors.NewGenericServerResponse
 */
export function genericServerResponse(
  code: number,
  verb: string,
  gr: GroupResource,
  name: string,
  serverMessage: string,
  retryAfterSeconds: number,
  unexpected: boolean,
): StatusError {
  let [reason, message] = genericMeaning(code, verb, serverMessage);
  const subject = gr.group === "" && gr.resource === "" ? "" : formatGroupResource(gr);
  if (subject !== "") message += ` (${verb.toLowerCase()} ${subject}${name === "" ? "" : ` ${name}`})`;
  const causes = unexpected ? [{ reason: "UnexpectedServerResponse", message: serverMessage }] : [];
  return failure(reason, code, message, detailsOf({ name, group: gr.group, kind: gr.resource, causes, retryAfterSeconds }));
}

function genericMeaning(code: number, verb: string, serverMessage: string): [Reason | "", string] {
  switch (code) {
    case 409:
      return [verb === "POST" ? "AlreadyExists" : "Conflict", "the server reported a conflict"];
    case 404:
      return ["NotFound", "the server could not find the requested resource"];
    case 400:
      return ["BadRequest", "the server rejected our request for an unknown reason"];
    case 401:
      return ["Unauthorized", "the server has asked for the client to provide credentials"];
    case 403:
      return ["Forbidden", serverMessage];
    case 406:
      return [
        "NotAcceptable",
        serverMessage === "" || serverMessage === "unknown"
          ? "the server was unable to respond with a content type that the client supports"
          : serverMessage,
      ];
    case 415:
      return ["UnsupportedMediaType", serverMessage];
    case 405:
      return ["MethodNotAllowed", "the server does not allow this method on the requested resource"];
    case 422:
      return ["Invalid", "the server rejected our request due to an error in our request"];
    case 503:
      return ["ServiceUnavailable", "the server is currently unable to handle the request"];
    case 504:
      return [
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
      ];
    case 429:
      return ["TooManyRequests", "the server has received too many requests and has asked us to try again later"];
    default:
      return code >= 500
        ? ["InternalError", `an error on the server (${goQuote(serverMessage)}) has prevented the request from succeeding`]
        : ["", `the server responded with the status code ${code} but did not return more information`];
  }
}

/**
 * For upstream errors that are not a Status: 500 with the plain message and without reason.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/responsewriters/status.go ErrorToAPIStatus
 */
export function plainError(message: string, options?: ErrorOptions): StatusError {
  return failure("", 500, message, undefined, options?.cause);
}

/** The Status of any error; errors other than StatusError become 500 InternalError. */
export function statusOf(err: unknown): Status {
  return err instanceof StatusError ? err.status : internalError(err).status;
}
