/**
 * What is known of one request, and the records made of it: audit.k8s.io/v1 Event, as text from the start, since a
 * record outlives the request's objects.
 * Source: k8s.io/apiserver pkg/audit/request.go, format.go
 */
import { encodeJson, encodeUntyped, parseJson } from "@coxswain/apimachinery/codec/json";
import { decodeProtobuf } from "@coxswain/apimachinery/codec/protobuf";
import { parseYaml } from "@coxswain/apimachinery/codec/yaml";
import { formatMicroTime, formatTime } from "@coxswain/apimachinery/meta/time";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { AuditTrail } from "../request/audit-trail.ts";
import type { UserInfo } from "../request/context.ts";
import type { RequestInfo } from "../request/request-info.ts";
import { type Level, levels, type Stage, type Verdict } from "./policy.ts";

export interface EventSource {
  readonly auditId: string;
  readonly requestUri: string;
  readonly info: RequestInfo;
  /** undefined when authentication failed */
  readonly user: UserInfo | undefined;
  readonly sourceIps: readonly string[];
  readonly userAgent: string;
  readonly receivedMs: number;
}

export const auditVersions = ["audit.k8s.io/v1alpha1", "audit.k8s.io/v1beta1", "audit.k8s.io/v1"] as const;
export type AuditVersion = (typeof auditVersions)[number];

/** One event, ready to be written. */
export interface AuditRecord {
  readonly level: Level;
  /** As an item of a list: without kind and apiVersion. */
  item(version: AuditVersion): string;
  /** One line of the legacy format, without newline. */
  readonly legacy: string;
  /** Without request and response object, and marked so. */
  truncated(): AuditRecord;
}

/** The event as an object of its own, without newline. */
export function eventJson(record: AuditRecord, version: AuditVersion): string {
  return `{"kind":"Event","apiVersion":"${version}",${record.item(version).slice(1)}`;
}

interface ResponseStatus {
  status?: string;
  message?: string;
  reason?: string;
  code?: number;
}

const longestUserAgent = 1024;

export class AuditEvent implements AuditTrail {
  responseStatus: ResponseStatus | undefined;
  /** Set by the filter. */
  onStarted: (code: number) => void = () => {};
  readonly #source: EventSource;
  readonly #verdict: Verdict;
  readonly #rank: number;
  readonly #annotations = new Map<string, string>();
  readonly #objectRef: Record<string, string> | undefined;
  #impersonated: UserInfo | undefined;
  #request: string | undefined;
  #response: string | undefined;

  constructor(source: EventSource, verdict: Verdict) {
    this.#source = source;
    this.#verdict = verdict;
    this.#rank = levels.indexOf(verdict.level);
    const { info } = source;
    if (info.isResourceRequest) {
      const { resource, namespace, name, group, version, subresource } = info;
      this.#objectRef = { resource, namespace, name, apiGroup: group, apiVersion: version, subresource };
    }
  }

  omits(stage: Stage): boolean {
    return this.#verdict.omitStages.has(stage);
  }

  requestObject(object: KubeObject | undefined, json: () => Buffer | string): void {
    const ref = this.#objectRef;
    const metadata = object?.metadata;
    if (ref !== undefined && metadata !== undefined) {
      ref["namespace"] ||= metadata.namespace ?? "";
      ref["name"] ||= metadata.name ?? "";
      ref["uid"] ||= metadata.uid ?? "";
      ref["resourceVersion"] ||= metadata.resourceVersion ?? "";
    }
    if (this.#rank >= levels.indexOf("Request")) this.#request = this.#embedded(json());
  }

  requestPatch(bytes: Buffer): void {
    if (this.#rank < levels.indexOf("Request")) return;
    this.#request = compactJson(bytes.toString("utf8"));
  }

  get recordsResponse(): boolean {
    return this.#rank >= levels.indexOf("RequestResponse");
  }

  /** The answer as it goes out: a Status says how it ended, any object is kept where the level asks for it. */
  responseBody(mediaType: string, bytes: Buffer): void {
    const status = isStatus(mediaType, bytes);
    if (!status && !this.recordsResponse) return;
    const json = objectJson(mediaType, bytes);
    if (json === undefined) return;
    if (status) {
      const { status: outcome, reason } = JSON.parse(json) as ResponseStatus;
      this.responseStatus = { ...(outcome ? { status: outcome } : {}), ...(reason ? { reason } : {}) };
    }
    if (this.recordsResponse) this.#response = this.#embedded(json);
  }

  annotate(key: string, value: string): void {
    if (!this.#annotations.has(key)) this.#annotations.set(key, value);
  }

  annotateContent(key: string, value: string): void {
    if (this.#rank >= levels.indexOf("Request")) this.annotate(key, value);
  }

  started(code: number): void {
    this.onStarted(code);
  }

  impersonated(user: UserInfo): void {
    this.#impersonated = user;
  }

  /** The event as it is now: a buffer may get to it when the request has gone on. */
  record(stage: Stage, nowMs: number): AuditRecord {
    const { level } = this.#verdict;
    const { receivedMs } = this.#source;
    const fields = this.#fields(stage);
    const objects =
      (this.#request === undefined ? "" : `,"requestObject":${this.#request}`) +
      (this.#response === undefined ? "" : `,"responseObject":${this.#response}`);
    const times = `,"requestReceivedTimestamp":"${formatMicroTime(receivedMs)}","stageTimestamp":"${formatMicroTime(nowMs)}"`;
    const annotations = [...this.#annotations];
    const legacy = this.#legacy(stage);
    const recordOf = (withObjects: string, withAnnotations: readonly [string, string][]): AuditRecord => ({
      level,
      item(version) {
        const front = version === "audit.k8s.io/v1" ? fields : olderFields(fields, version, receivedMs, nowMs);
        return escaped(`${JSON.stringify(front).slice(0, -1)}${withObjects}${times}${annotationsJson(withAnnotations)}}`);
      },
      legacy,
      truncated: () => recordOf("", [...annotations, truncatedAnnotation]),
    });
    return recordOf(objects, annotations);
  }

  #fields(stage: Stage): Fields {
    const { auditId, requestUri, info, user, sourceIps, userAgent } = this.#source;
    return {
      level: this.#verdict.level,
      auditID: auditId,
      stage,
      requestURI: requestUri,
      verb: info.verb,
      user: userInfo(user),
      ...(this.#impersonated === undefined ? {} : { impersonatedUser: userInfo(this.#impersonated) }),
      ...(sourceIps.length === 0 ? {} : { sourceIPs: sourceIps }),
      ...(userAgent === "" ? {} : { userAgent: shortened(userAgent) }),
      ...(this.#objectRef === undefined ? {} : { objectRef: inOrder(this.#objectRef) }),
      ...(this.responseStatus === undefined ? {} : { responseStatus: { metadata: {}, ...statusInOrder(this.responseStatus) } }),
    };
  }

  #legacy(stage: Stage): string {
    const { auditId, requestUri, info, user, sourceIps, userAgent, receivedMs } = this.#source;
    const groups = user?.groups ?? [];
    const as = this.#impersonated;
    const fields: [string, string][] = [
      ["id", auditId],
      ["stage", stage],
      ["ip", sourceIps[0] ?? "<unknown>"],
      ["method", info.verb],
      ["user", user?.name || "<none>"],
      ["groups", user !== undefined && groups.length > 0 ? quotedList(groups) : "<none>"],
      ["as", as?.name ?? "<self>"],
      ["asgroups", as === undefined ? "<lookup>" : quotedList(as.groups)],
      ["user-agent", shortened(userAgent)],
      ["namespace", this.#objectRef?.["namespace"] || "<none>"],
      ["uri", requestUri],
    ];
    const response = this.responseStatus === undefined ? "<deferred>" : String(this.responseStatus.code ?? 0);
    const time = formatMicroTime(receivedMs).replace(/\.?0+Z$/, "Z");
    const text = fields.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(" ");
    return `${time} AUDIT: ${text} response="${response}"`;
  }

  /** An object of ours as it stands in the event: on one line, without managed fields where the policy says so. */
  #embedded(json: Buffer | string): string {
    const text = String(json).trimEnd();
    if (!this.#verdict.omitManagedFields || !text.includes('"managedFields"')) return text;
    return encodeUntyped(withoutManagedFields(parseJson(text)))
      .toString()
      .trimEnd();
  }
}

type Fields = Readonly<Record<string, unknown>> & {
  readonly level: Level;
  readonly objectRef?: Readonly<Record<string, string>>;
};

/**
 * The versions before v1 tell the times once more, in seconds; v1alpha1 has group and version of the object in one field.
 * Source: k8s.io/apiserver pkg/apis/audit/{v1alpha1,v1beta1}/conversion.go
 */
function olderFields({ level, objectRef, ...rest }: Fields, version: AuditVersion, receivedMs: number, nowMs: number): object {
  const { apiGroup, ...ref } = objectRef ?? {};
  const isAlpha = version === "audit.k8s.io/v1alpha1" && apiGroup !== undefined;
  return {
    metadata: { creationTimestamp: formatTime(nowMs) },
    level,
    timestamp: formatTime(receivedMs),
    ...rest,
    ...(objectRef !== undefined && {
      objectRef: isAlpha ? { ...ref, apiVersion: `${apiGroup}/${ref["apiVersion"]}` } : objectRef,
    }),
  };
}

const truncatedAnnotation: [string, string] = ["audit.k8s.io/truncated", "true"];

function annotationsJson(annotations: readonly [string, string][]): string {
  if (annotations.length === 0) return "";
  const sorted = annotations.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `,"annotations":{${sorted.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`).join(",")}}`;
}

function userInfo(user: UserInfo | undefined): object {
  if (user === undefined) return {};
  const extra = Object.entries(user.extra ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return {
    ...(user.name === "" ? {} : { username: user.name }),
    ...(user.uid === undefined || user.uid === "" ? {} : { uid: user.uid }),
    ...(user.groups.length === 0 ? {} : { groups: user.groups }),
    ...(extra.length === 0 ? {} : { extra: Object.fromEntries(extra) }),
  };
}

const refOrder = ["resource", "namespace", "name", "uid", "apiGroup", "apiVersion", "resourceVersion", "subresource"];

function inOrder(ref: Record<string, string>): Record<string, string> {
  return Object.fromEntries(refOrder.flatMap((field) => (ref[field] ? [[field, ref[field] as string]] : [])));
}

function statusInOrder({ status, message, reason, code }: ResponseStatus): object {
  return {
    ...(status ? { status } : {}),
    ...(message ? { message } : {}),
    ...(reason ? { reason } : {}),
    ...(code ? { code } : {}),
  };
}

function shortened(userAgent: string): string {
  return userAgent.length > longestUserAgent ? `${userAgent.slice(0, longestUserAgent)}...TRUNCATED` : userAgent;
}

function quotedList(list: readonly string[]): string {
  return list.map((one) => JSON.stringify(one)).join(",");
}

/** As Go's encoder writes strings. None of these characters stands outside of one. */
function escaped(json: string): string {
  return json.replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const jsonType = "application/json";
const yamlType = "application/yaml";
const protobufType = "application/vnd.kubernetes.protobuf";

/** Told from the first bytes: most answers are no Status, and need not be parsed to know it. */
function isStatus(mediaType: string, bytes: Buffer): boolean {
  const start = bytes.subarray(0, 64).toString("latin1");
  if (mediaType === jsonType) return /^\{\s*"kind":\s*"Status"/.test(start);
  if (mediaType === protobufType) return start.startsWith("k8s\0") && start.includes("\x12\x06Status");
  return mediaType === yamlType && bytes.toString("utf8").includes("kind: Status\n");
}

/** An API object on one line of JSON; undefined for a document of another kind. */
function objectJson(mediaType: string, bytes: Buffer): string | undefined {
  let json: string | undefined;
  if (mediaType === jsonType) json = compactJson(bytes.toString("utf8"));
  else if (mediaType === yamlType) json = compactJson(encodeUntyped(parseYaml(bytes.toString("utf8"))).toString());
  else if (mediaType === protobufType) json = encodeJson(decodeProtobuf(bytes)).toString().trimEnd();
  return json !== undefined && /^\{"(kind|apiVersion)":/.test(json) ? json : undefined;
}

/** A user's JSON on one line with its own order of keys; YAML becomes JSON; undefined when it is neither. */
function compactJson(text: string): string | undefined {
  try {
    parseJson(text);
    return text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, "$1");
  } catch {
    try {
      return encodeUntyped(parseYaml(text)).toString().trimEnd();
    } catch {
      return undefined;
    }
  }
}

/** Of an object, of a list's items, and of the objects in a table's rows. Changes its argument. */
function withoutManagedFields(value: unknown): unknown {
  const drop = (object: unknown): void => {
    const metadata = (object as { metadata?: { managedFields?: unknown } } | null)?.metadata;
    if (typeof metadata === "object" && metadata !== null) delete metadata.managedFields;
  };
  drop(value);
  const { items, rows } = (value ?? {}) as { items?: unknown; rows?: unknown };
  if (Array.isArray(items)) for (const item of items) drop(item);
  if (Array.isArray(rows)) for (const row of rows) drop((row as { object?: unknown } | null)?.object);
  return value;
}
