import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { UserInfo } from "./context.ts";

/**
 * What the rooms behind the filters tell the audit of a request. Requests that the policy leaves out have none, so that
 * a server without a policy pays one comparison. Texts of objects are only made when the rule's level asks for them.
 */
export interface AuditTrail {
  /** The object of the request, decoded and with defaults; it completes what the URL says of the object. */
  requestObject(object: KubeObject | undefined, json: () => Buffer | string): void;
  /** A patch as it was sent. */
  requestPatch(bytes: Buffer): void;
  /** The first value of a key stays. */
  annotate(key: string, value: string): void;
  /** Only in events that hold the request's object: the value says what is in it. */
  annotateContent(key: string, value: string): void;
  /** The answer has begun past the exchange: an upgraded connection. */
  started(code: number): void;
  impersonated(user: UserInfo): void;
}
