import type { Decision, ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import { questionsRef } from "@coxswain/apimachinery/decisions/question";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";

/** A question in etcd, for all API servers: each sends it to the daemons connected to it. Key: its id. */
export interface StoredQuestion extends KubeObject {
  /** Id of the API server that wrote the question. */
  by: string;
  requested: readonly { recipient: string; refs: readonly ObjectRef[] }[];
}

/** The answer of one recipient. Key: `<question>/<recipient>`. */
export interface StoredAnswer extends KubeObject {
  decisions: readonly Decision[];
}

const { group, version } = questionsRef;
const common = { group, hub: version, versions: [{ version }] } as const;

/** The storages of questions and answers, which are not served as resources. */
export const storedQuestions = { ...common, resource: "questions", kind: "StoredQuestion", namespaced: false } as const;
export const storedAnswers = { ...common, resource: "answers", kind: "StoredAnswer", namespaced: true } as const;

/** Lifetime of both in etcd; readers wait for a shorter time. */
export const storedTtlSeconds = 10;
