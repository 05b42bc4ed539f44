import type { GroupVersionKind, GroupVersionResource } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { UserInfo } from "../request/context.ts";
import type { WebhookReinvocation } from "./webhooks/reinvocation.ts";

/**
 * Attributes of one write request.
 * @typeParam T the kind of the objects
 * Source: k8s.io/apiserver pkg/admission/interfaces.go
 */
export interface AdmissionAttributes<T extends KubeObject = KubeObject> {
  readonly operation: "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
  /** In the version of the request. */
  readonly kind: GroupVersionKind;
  readonly resource: GroupVersionResource;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** In the hub version; mutating plugins modify it in place. undefined for DELETE. */
  object: T | undefined;
  /** Shared, hence read-only. undefined for CREATE and CONNECT. */
  readonly oldObject: T | undefined;
  readonly user: UserInfo;
  readonly dryRun: boolean;
  readonly options?: unknown;
  /** 1 in the reinvocation round of the mutating plugins. */
  round?: number;
  /** Set by a plugin that changed the object in the first round, to request reinvocation of the others. */
  wantsAnotherRound?: boolean;
  /** State that the mutating webhooks of the first round pass to the reinvocation round. */
  reinvocation?: WebhookReinvocation;
  /** Changes by mutating webhooks, in the order of the calls. */
  changes?: WebhookChange[];
  readonly signal: AbortSignal;
  warn(text: string): void;
  /** Adds an annotation to the request's audit event, if any; the first value of a key wins. */
  annotate(key: string, value: string): void;
  /** Like `annotate`, but only at audit levels that log the request object, because the value reveals its contents. */
  annotateContent(key: string, value: string): void;
  /** Reports the time spent in a webhook call. */
  webhookTook?(type: "admit" | "validating", ms: number): void;
}

export interface WebhookChange {
  /** Name of the MutatingWebhookConfiguration. */
  readonly configuration: string;
  readonly webhook: string;
  /** Paths of the first operations of the webhook's patch. */
  readonly paths: readonly string[];
}

/** @typeParam T the kind of the only resource that it looks at; it has to leave requests on others alone */
export interface AdmissionPlugin<T extends KubeObject = KubeObject> {
  /** The plugin's name in --enable-admission-plugins. */
  readonly name: string;
  /** Whether the plugin is called for the operation; evaluated once, when the chain is created. */
  handles(operation: AdmissionAttributes["operation"]): boolean;
  /**
   * The resources that it looks at, with all their subresources: `pods`, `ingresses.networking.k8s.io`; undefined: any. The chain
   * does not call it for others.
   */
  readonly resources?: readonly string[];
  /** Mutates `attributes.object` in place. @throws StatusError to reject the request. */
  admit?(attributes: AdmissionAttributes<T>): Promise<void>;
  /** @throws StatusError to reject the request. */
  validate?(attributes: AdmissionAttributes<T>): Promise<void>;
  /** True when the plugin's informers have synced; part of readyz. */
  ready?(): boolean;
}

/** The whole chain, as used by handlers and the generic store. */
export interface AdmissionChain {
  mutate(attributes: AdmissionAttributes): Promise<void>;
  validate(attributes: AdmissionAttributes): Promise<void>;
}
