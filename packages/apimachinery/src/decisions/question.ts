import type { ResourceRef } from "../objects/meta/group-version.ts";
import type { KubeObject } from "../objects/meta/types.ts";
import type { Decision, ObjectRef } from "./decision.ts";

/**
 * The resource by which API servers query daemons for their decisions. It is not in discovery. A daemon watches its questions
 * with its recipient's name in place of an object's name, and creates the subresource `answers` of that name.
 */
export const questionsRef: ResourceRef = {
  group: "diagnostics.coxswain.dev",
  version: "v1",
  resource: "questions",
  kind: "Question",
  namespaced: false,
};

export const answersSubresource = "answers";

/** A question as received by a daemon. `metadata.name` is the question's ID. */
export interface Question extends KubeObject {
  refs: readonly ObjectRef[];
}

/** `metadata.name` is the question's id. */
export interface Answer extends KubeObject {
  decisions: readonly Decision[];
  /** True when some decisions or their details did not fit. */
  cut?: boolean;
}

/** Limit of the answers to one question; longer lists of decisions are truncated. */
export const answerLimitBytes = 128 * 1024;

const kubeletPrefix = "kubelet.";

/** The recipient of a question: a component's name, or the kubelet of one node. */
export function kubeletRecipient(nodeName: string): string {
  return kubeletPrefix + nodeName;
}

/** @returns undefined when it is not a kubelet */
export function nodeOfRecipient(recipient: string): string | undefined {
  return recipient.startsWith(kubeletPrefix) ? recipient.slice(kubeletPrefix.length) : undefined;
}
