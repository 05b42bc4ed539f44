import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { UserInfo } from "@coxswain/apimachinery/serving/authentication/user";

/**
 * Records what handlers know of a request in its audit event. Undefined for requests that the policy excludes, so that a
 * server without a policy pays one comparison. Objects are encoded only when the rule's level requires it.
 */
export interface AuditTrail {
  /** Whether the level includes request objects. */
  readonly recordsRequest: boolean;
  /** The decoded request object with defaults; completes the object reference derived from the URL. */
  requestObject(object: KubeObject | undefined, json: () => Buffer | string): void;
  /** A patch as sent. */
  requestPatch(bytes: Buffer): void;
  /** Sets an annotation; the first value of a key is kept. */
  annotate(key: string, value: string): void;
  /** Sets an annotation only when the event contains the request object, since the value reveals parts of it. */
  annotateContent(key: string, value: string): void;
  /** The response began outside of the exchange: an upgraded connection. */
  started(code: number): void;
  impersonated(user: UserInfo): void;
}
