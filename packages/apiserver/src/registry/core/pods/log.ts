import { canonicalTime } from "@coxswain/apimachinery/objects/codec/go-time";
import { type FieldError, forbiddenField, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { badRequest, invalid } from "@coxswain/apimachinery/objects/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { CatalogueConfig } from "../../config.ts";
import { isNegativeText } from "../../field-checks.ts";
import type { ConnectTarget, SubresourceCall } from "../../generic/resource.ts";
import { kubeletOf } from "../nodes/connection.ts";
import { chooseContainer } from "./container-choice.ts";
import { isTrue, podOf } from "./exec.ts";

/**
 * Streams the log of a container from the kubelet. The log of a pod without a node is empty.
 * Source: pkg/registry/core/pod/rest/log.go, pkg/registry/core/pod/strategy.go LogLocation
 */
export function connectLog(config: CatalogueConfig): (call: SubresourceCall) => Promise<ConnectTarget | undefined> {
  return async (call) => {
    const options = logOptions(call.ctx.query);
    const errors = validateLogOptions(options);
    if (errors.length > 0) throw invalid({ group: "", kind: "PodLogOptions" }, call.name, errors);
    const pod = await podOf(call);
    const container = chooseContainer(pod, options.container);
    const { nodeName } = pod.spec;
    if (!nodeName) return undefined;
    const url = await kubeletOf(call, nodeName, config);
    url.pathname = `/containerLogs/${encodeURIComponent(call.namespace)}/${encodeURIComponent(call.name)}/${encodeURIComponent(container)}`;
    url.search = kubeletQuery(options).toString();
    return { url, toNode: true, skipVerify: options.insecureSkipTLSVerifyBackend, as: "text" };
  };
}

interface LogOptions {
  container: string;
  follow: boolean;
  previous: boolean;
  timestamps: boolean;
  insecureSkipTLSVerifyBackend: boolean;
  sinceSeconds?: number;
  sinceTime?: string;
  tailLines?: number;
  limitBytes?: number;
}

/** @throws BadRequest for invalid numbers, booleans and times */
export function logOptions(query: URLSearchParams): LogOptions {
  const options: LogOptions = {
    container: query.get("container") ?? "",
    follow: isTrue(query, "follow"),
    previous: isTrue(query, "previous"),
    timestamps: isTrue(query, "timestamps"),
    insecureSkipTLSVerifyBackend: isTrue(query, "insecureSkipTLSVerifyBackend"),
  };
  for (const name of ["sinceSeconds", "tailLines", "limitBytes"] as const) {
    const value = number(query, name);
    if (value !== undefined) options[name] = value;
  }
  const sinceTime = query.get("sinceTime");
  if (sinceTime) options.sinceTime = timeOf(sinceTime);
  return options;
}

/** @throws BadRequest with the error text of Go's time.Parse */
function timeOf(text: string): string {
  try {
    canonicalTime(text);
  } catch (err) {
    throw badRequest(messageOf(err));
  }
  return text;
}

/** Source: pkg/apis/core/validation ValidatePodLogOptions */
export function validateLogOptions(options: LogOptions): FieldError[] {
  const errors: FieldError[] = [];
  if (options.tailLines !== undefined && options.tailLines < 0) {
    errors.push(invalidValue("tailLines", options.tailLines, isNegativeText));
  }
  if (options.limitBytes !== undefined && options.limitBytes < 1) {
    errors.push(invalidValue("limitBytes", options.limitBytes, "must be greater than 0"));
  }
  if (options.sinceSeconds !== undefined && options.sinceTime !== undefined) {
    errors.push(forbiddenField("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"));
  } else if (options.sinceSeconds !== undefined && options.sinceSeconds < 1) {
    errors.push(invalidValue("sinceSeconds", options.sinceSeconds, "must be greater than 0"));
  }
  return errors;
}

function kubeletQuery(options: LogOptions): URLSearchParams {
  const params = new URLSearchParams();
  if (options.follow) params.set("follow", "true");
  if (options.previous) params.set("previous", "true");
  if (options.timestamps) params.set("timestamps", "true");
  if (options.sinceSeconds !== undefined) params.set("sinceSeconds", String(options.sinceSeconds));
  if (options.sinceTime !== undefined) params.set("sinceTime", options.sinceTime);
  if (options.tailLines !== undefined) params.set("tailLines", String(options.tailLines));
  if (options.limitBytes !== undefined) params.set("limitBytes", String(options.limitBytes));
  return params;
}

/** Parses like Go's strconv.ParseInt. Numbers that a double cannot have become the nearest whole one that it can. */
function number(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name);
  if (value === null) return undefined;
  const refused = (why: string): Error => badRequest(`strconv.ParseInt: parsing ${goQuote(value)}: ${why}`);
  if (!/^[-+]?\d+$/.test(value)) throw refused("invalid syntax");
  const parsed = BigInt(value.replace(/^\+/, ""));
  if (BigInt.asIntN(64, parsed) !== parsed) throw refused("value out of range");
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, Number(parsed)));
}
