/**
 * State of one request and the records made from it: audit.k8s.io/v1 Event, serialized early because a record outlives the
 * request's objects.
 * Source: k8s.io/apiserver pkg/audit/request.go, format.go
 */
import { formatMicroTime, formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { AuditTrail } from "../request/audit-trail.ts";
import type { UserInfo } from "../request/context.ts";
import type { RequestInfo } from "../request/request-info.ts";
import { type Level, levels, type Stage, type Verdict } from "./policy.ts";
import { escapeHtml, newObjectRecorder, type ObjectRecorder, type RecordedObject, type SentObject } from "./recorded-object.ts";

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

/** One event, ready for serialization. */
export interface AuditRecord {
  readonly level: Level;
  /** JSON of the event as list item: without kind and apiVersion. */
  item(version: AuditVersion): Buffer;
  /** Size in bytes of the request and the response object. */
  readonly objectBytes: number;
  /** One line in the legacy format, without newline. */
  readonly legacy: string;
  /** A copy without request and response object, annotated as truncated. */
  truncated(): AuditRecord;
}

/** JSON of a single event, with kind and apiVersion, without newline. */
export function eventJson(record: AuditRecord, version: AuditVersion): Buffer {
  return Buffer.concat([Buffer.from(`{"kind":"Event","apiVersion":"${version}",`), record.item(version).subarray(1)]);
}

interface ResponseStatus {
  status?: string;
  message?: string;
  reason?: string;
  code?: number;
}

const longestUserAgent = 1024;

/** Collects the audit data of one request; `record` makes a snapshot for each stage. */
export class AuditEvent implements AuditTrail {
  responseStatus: ResponseStatus | undefined;
  /** Called when the response starts; set by the filter. */
  onStarted: (code: number) => void = () => {};
  readonly #source: EventSource;
  readonly #verdict: Verdict;
  readonly #rank: number;
  readonly #annotations = new Map<string, string>();
  readonly #objectRef: Record<string, string> | undefined;
  #impersonated: UserInfo | undefined;
  readonly #objects: ObjectRecorder;
  /** Objects not yet converted. */
  readonly #sent = new Map<"request" | "response", SentObject>();
  readonly #recorded: { request?: Uint8Array; response?: Uint8Array } = {};
  #reservedBytes = 0;
  #isTruncated = false;

  constructor(source: EventSource, verdict: Verdict, objects: ObjectRecorder = newObjectRecorder()) {
    this.#source = source;
    this.#verdict = verdict;
    this.#objects = objects;
    this.#rank = levels.indexOf(verdict.level);
    const { info } = source;
    if (info.isResourceRequest) {
      const { resource, namespace, name, group, version, subresource } = info;
      this.#objectRef = { resource, namespace, name, apiGroup: group, apiVersion: version, subresource };
    }
  }

  /** Whether the policy omits the record of this stage. */
  omits(stage: Stage): boolean {
    return this.#verdict.omitStages.has(stage);
  }

  get recordsRequest(): boolean {
    return this.#rank >= levels.indexOf("Request");
  }

  /** Records the decoded object of a request; `json` is called only if the level includes request bodies. */
  requestObject(object: KubeObject | undefined, json: () => Buffer | string): void {
    const ref = this.#objectRef;
    const metadata = object?.metadata;
    if (ref !== undefined && metadata !== undefined) {
      ref["namespace"] ||= metadata.namespace ?? "";
      ref["name"] ||= metadata.name ?? "";
      ref["uid"] ||= metadata.uid ?? "";
      ref["resourceVersion"] ||= metadata.resourceVersion ?? "";
    }
    if (this.recordsRequest) this.#keepRequest("request", Buffer.from(json()));
  }

  /** Records the body of a patch if the level includes request bodies. */
  requestPatch(bytes: Buffer): void {
    if (this.recordsRequest) this.#keepRequest("patch", bytes);
  }

  #keepRequest(source: "request" | "patch", bytes: Buffer): void {
    if (!this.reserve(bytes.length)) return;
    const sent = { source, mediaType: "", gzip: false, bytes, recordsObject: true };
    this.#sent.set("request", { ...sent, omitManagedFields: this.#verdict.omitManagedFields });
  }

  /** Whether the level includes response bodies. */
  get recordsResponse(): boolean {
    return this.#rank >= levels.indexOf("RequestResponse");
  }

  /** Records the response body: a Status sets responseStatus, other objects are kept when the level requires it. */
  responseBody(mediaType: string, gzip: boolean, bytes: Buffer): void {
    const { recordsResponse: recordsObject } = this;
    const { omitManagedFields } = this.#verdict;
    this.#sent.set("response", { source: "answer", mediaType, gzip, bytes, omitManagedFields, recordsObject });
  }

  /** Reserves memory for a part of an object. @returns false when the limit is exceeded; the event then has no objects */
  reserve(bytes: number): boolean {
    if (this.#isTruncated) return false;
    if (this.#reservedBytes + bytes > this.#objects.maxObjectBytes || !this.#objects.reserve(bytes)) {
      this.#truncate();
      return false;
    }
    this.#reservedBytes += bytes;
    return true;
  }

  /** Frees the reserved memory; call it when nothing more is recorded for the request. */
  release(): void {
    this.#objects.release(this.#reservedBytes);
    this.#reservedBytes = 0;
  }

  #truncate(): void {
    this.#isTruncated = true;
    this.#sent.clear();
    delete this.#recorded.request;
    delete this.#recorded.response;
    this.release();
    this.annotate(...truncatedAnnotation);
  }

  /** Converts pending objects for the next record; await the promise, if any. Objects that cannot be converted are omitted. */
  prepare(onError: (err: unknown) => void): Promise<void> | undefined {
    const pending: Promise<void>[] = [];
    for (const [name, sent] of this.#sent) {
      const failed = (err: unknown): void => {
        onError(err);
        this.#truncate();
      };
      try {
        const found = this.#objects.convert(sent);
        if (found instanceof Promise) pending.push(found.then((object) => this.#keep(name, object)).catch(failed));
        else this.#keep(name, found);
      } catch (err) {
        failed(err);
      }
    }
    this.#sent.clear();
    return pending.length === 0 ? undefined : Promise.all(pending).then(() => {});
  }

  #keep(name: "request" | "response", { json, status }: RecordedObject): void {
    if (status !== undefined) this.responseStatus = { ...this.responseStatus, ...status };
    if (json !== undefined && !this.#isTruncated) this.#recorded[name] = json;
  }

  /** Adds an annotation, at any level. The first value of a key is kept. */
  annotate(key: string, value: string): void {
    if (!this.#annotations.has(key)) this.#annotations.set(key, value);
  }

  /** As `annotate`, for values from the request's body: only if the level includes request bodies. */
  annotateContent(key: string, value: string): void {
    if (this.#rank >= levels.indexOf("Request")) this.annotate(key, value);
  }

  started(code: number): void {
    this.onStarted(code);
  }

  impersonated(user: UserInfo): void {
    this.#impersonated = user;
  }

  /** Snapshot of the event: a buffer may serialize it after the request has continued. */
  record(stage: Stage, nowMs: number): AuditRecord {
    const { level } = this.#verdict;
    const { receivedMs } = this.#source;
    const fields = this.#fields(stage);
    const { request, response } = this.#recorded;
    const objects: Uint8Array[] = [];
    if (request !== undefined) objects.push(Buffer.from(',"requestObject":'), request);
    if (response !== undefined) objects.push(Buffer.from(',"responseObject":'), response);
    const times = `,"requestReceivedTimestamp":"${formatMicroTime(receivedMs)}","stageTimestamp":"${formatMicroTime(nowMs)}"`;
    const annotations = [...this.#annotations];
    const legacy = this.#legacy(stage);
    const recordOf = (withObjects: readonly Uint8Array[], withAnnotations: readonly [string, string][]): AuditRecord => ({
      level,
      item(version) {
        const front = version === "audit.k8s.io/v1" ? fields : olderFields(fields, version, receivedMs, nowMs);
        return Buffer.concat([
          Buffer.from(escapeHtml(JSON.stringify(front).slice(0, -1))),
          ...withObjects,
          Buffer.from(escapeHtml(`${times}${annotationsJson(withAnnotations)}}`)),
        ]);
      },
      objectBytes: withObjects.reduce((sum, part) => sum + part.length, 0),
      legacy,
      truncated: () => recordOf([], [...annotations.filter(([key]) => key !== truncatedAnnotation[0]), truncatedAnnotation]),
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
}

type Fields = Readonly<Record<string, unknown>> & {
  readonly level: Level;
  readonly objectRef?: Readonly<Record<string, string>>;
};

/**
 * Versions before v1 repeat the times in seconds; v1alpha1 has group and version of the object in one field.
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
  return Object.fromEntries(refOrder.flatMap((field) => (ref[field] ? [[field, ref[field]]] : [])));
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
