import type { GroupVersionKind, GroupVersionResource } from "@coxswain/apimachinery/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { UserInfo } from "../request/context.ts";

/** One write on its way to the registry. Source: k8s.io/apiserver pkg/admission/interfaces.go */
export interface AdmissionAttributes {
  readonly operation: "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
  /** The request's own version. */
  readonly kind: GroupVersionKind;
  readonly resource: GroupVersionResource;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** In the hub version; mutating plugins change it in place. undefined for DELETE. */
  object: KubeObject | undefined;
  /** Shared: read only. undefined for CREATE and CONNECT. */
  readonly oldObject: KubeObject | undefined;
  readonly user: UserInfo;
  readonly dryRun: boolean;
  readonly options?: unknown;
  /** 1 when all mutating plugins are asked once more. */
  round?: number;
  /** Set by a plugin that changed the object in the first round and lets the others see that. */
  wantsAnotherRound?: boolean;
  readonly signal: AbortSignal;
  warn(text: string): void;
  /** For the audit event of the request, if there is one; the first value of a key stays. */
  annotate(key: string, value: string): void;
  /** As `annotate`, but only where the event holds the request's object too: the value says what is in it. */
  annotateContent(key: string, value: string): void;
  /** Tells what was spent on a webhook of somebody else. */
  webhookTook?(type: "admit" | "validating", ms: number): void;
}

export interface AdmissionPlugin {
  /** As in --enable-admission-plugins. */
  readonly name: string;
  handles(operation: AdmissionAttributes["operation"]): boolean;
  /** Changes `attributes.object` in place. @throws StatusError to refuse. */
  admit?(attributes: AdmissionAttributes): Promise<void>;
  /** @throws StatusError to refuse. */
  validate?(attributes: AdmissionAttributes): Promise<void>;
  /** Resolves when its informers are filled; part of readyz. */
  ready?(): boolean;
}

/** The whole chain, as handlers and the generic store see it. */
export interface AdmissionChain {
  mutate(attributes: AdmissionAttributes): Promise<void>;
  validate(attributes: AdmissionAttributes): Promise<void>;
}
