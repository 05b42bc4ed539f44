/**
 * Explains one object: evaluates the rules of its kind and follows the objects they refer to, owners and dependents, to
 * one cause. Objects that the user may not read are not followed.
 */

import type { Decision, DecisionAnswers, DecisionReader, ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Event } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Explanation, Finding } from "./explanation.ts";
import { type AnyFacts, anyDeletionRules, anyRules, decisionRule, gatherAny } from "./kinds/any-object.ts";
import { rulesByKind } from "./kinds/table.ts";
import { type Facts, isSeen, oneLine, type Problem, type Reader, type Rule } from "./rule.ts";

/** Limit of the objects that one explanation visits, and thereby of its chain of causes. */
const mostObjects = 80;
const longestChain = 12;
/** Limit of queries to daemons for one explanation, and of objects in one query. */
const mostQuestions = 8;
const maxRequested = 20;
const maxDecisions = 40;

interface ExplainRequest {
  readonly object: KubeObject;
  readonly ref: ObjectRef;
}

interface ShownDecision extends Decision {
  /** True when the user may not read the object's content. */
  readonly isHidden?: boolean;
}

export interface EventReader extends Reader {
  /** Events about the object, the latest first. */
  events(ref: ObjectRef): Promise<readonly Event[]>;
  /** Whether the user may read all referenced objects. A reference without a name stands for all objects of its kind. */
  mayReadAll(refs: readonly ObjectRef[]): Promise<boolean>;
  mayReadEvents(namespace: string): Promise<boolean>;
}

export class Explainer {
  readonly #reader: EventReader;
  readonly #decisions: DecisionReader;
  readonly #signal: AbortSignal;
  readonly #visited = new Set<string>();
  readonly #silent = new Set<string>();
  readonly #decided = new Map<string, readonly ShownDecision[]>();
  #requested = 0;

  constructor(reader: EventReader, decisions: DecisionReader, signal: AbortSignal) {
    this.#reader = reader;
    this.#decisions = decisions;
    this.#signal = signal;
  }

  async explain(requested: ExplainRequest): Promise<Explanation> {
    const chain = await this.#findingsOf(requested);
    const cause = chain.at(-1);
    const shown = new Set([requested.ref, ...(cause === undefined ? [] : [cause.object])].map(keyOf));
    const decisions = [...shown].flatMap((key) => this.#decided.get(key) ?? []).slice(0, maxDecisions);
    return {
      kind: "Explanation",
      apiVersion: "diagnostics.coxswain.dev/v1",
      object: requested.ref,
      healthy: cause === undefined,
      ...(cause && { cause }),
      chain,
      ...(decisions.length > 0 && { decisions: decisions.map(({ plain: _, isHidden: __, ...rest }) => rest) }),
      ...(this.#silent.size > 0 && { silent: [...this.#silent] }),
    };
  }

  async #findingsOf({ object, ref }: ExplainRequest): Promise<Finding[]> {
    this.#visited.add(keyOf(ref));
    const facts = await this.#gather(object, ref);
    for (const rule of facts.rules) {
      const problem = rule(facts);
      if (problem === undefined) continue;
      const { follow = [], onlyIfFollowed = false, ...rest } = problem;
      const deeper = await this.#follow(follow);
      if (deeper.length === 0 && onlyIfFollowed) continue;
      const said = deeper.length === 0 ? exacter(rest, this.#decided.get(keyOf(ref)) ?? []) : rest;
      return [{ object: ref, ...said }, ...deeper];
    }
    return [];
  }

  /** The finding of the first referenced object that is not healthy, and those that it leads to. */
  async #follow(refs: readonly ObjectRef[]): Promise<Finding[]> {
    if (refs.length > 0) await this.#fetchDecisions(refs);
    for (const { resource, group, namespace, name } of refs) {
      if (this.#visited.size >= mostObjects) return [];
      const key = keyOf({ resource, group, namespace, name });
      if (this.#visited.has(key)) continue;
      this.#visited.add(key);
      const object = await this.#reader.get<KubeObject>(resource, group, namespace, name);
      if (!isSeen(object)) continue;
      const found = await this.#findingsOf({ object, ref: this.#reader.refOf(object, resource, group) });
      if (found.length > 0) return found.slice(0, longestChain);
    }
    return [];
  }

  async #gather(object: KubeObject, ref: ObjectRef) {
    const kind = rulesByKind[`${ref.resource}.${ref.group}`];
    const any = await gatherAny(object, this.#reader);
    const related = { ...((await kind?.gather(object, this.#reader)) ?? {}), ...any };
    await this.#fetchDecisions([ref]);
    const facts: Facts<KubeObject, AnyFacts> = {
      object,
      now: this.#reader.now,
      events: await this.#reader.events(ref),
      decisions: (this.#decided.get(keyOf(ref)) ?? []).filter(({ verdict }) => verdict !== "done"),
      related,
    };
    const rules: readonly Rule<KubeObject, AnyFacts>[] = object.metadata.deletionTimestamp
      ? [...(kind?.deletion ?? []), ...anyDeletionRules]
      : [...(kind?.rules ?? [decisionRule]), ...anyRules];
    return { ...facts, rules };
  }

  /** Daemons may take a second to answer: only a few queries are sent, and none after a query without an answer. */
  async #fetchDecisions(refs: readonly ObjectRef[]): Promise<void> {
    const unknown = refs.slice(0, maxRequested).filter((ref) => !this.#decided.has(keyOf(ref)));
    if (unknown.length === 0 || this.#requested >= mostQuestions || this.#silent.size > 0) return;
    this.#requested++;
    const { decisions, silent } = await this.#answers(unknown);
    for (const component of silent) this.#silent.add(component);
    for (const ref of unknown) {
      const own = decisions.filter(({ object }) => keyOf(object) === keyOf(ref));
      this.#decided.set(keyOf(ref), await this.#readable(own));
    }
  }

  /** Without answers, for example when etcd accepts no writes, objects and events still explain most causes. */
  async #answers(refs: readonly ObjectRef[]): Promise<DecisionAnswers> {
    try {
      return await this.#decisions.of(refs, this.#signal);
    } catch {
      this.#signal.throwIfAborted();
      return { decisions: [], silent: ["the daemons"] };
    }
  }

  /**
   * Texts that may name objects that the user may not read are replaced by plain ones. Decisions repeat the content of the object's events:
   * users who may not read events get only the reason.
   */
  async #readable(decisions: readonly Decision[]): Promise<ShownDecision[]> {
    const shown: ShownDecision[] = [];
    for (const decision of decisions) {
      const { related = [], details: _, remedy: __, plain, ...rest } = decision;
      const mayReadEvents = await this.#reader.mayReadEvents(decision.object.namespace || "default");
      if (mayReadEvents && (await this.#reader.mayReadAll(related))) shown.push(decision);
      else if (mayReadEvents && plain !== undefined) shown.push({ ...rest, summary: plain });
      else {
        const what = mayReadEvents ? "objects" : "events";
        const summary = `${wordsOf(decision.reason)} (details are of ${what} that you may not read)`;
        shown.push({ ...rest, summary, isHidden: true });
      }
    }
    return shown;
  }
}

/** Adds the scheduler's figures, such as by how much a pod exceeds what a node has free. */
function exacter(problem: Omit<Problem, "follow" | "onlyIfFollowed">, decisions: readonly ShownDecision[]) {
  const own = decisions.find(
    ({ reason, component, isHidden }) =>
      component === "kube-scheduler" && reason === "InsufficientResources" && reason === problem.reason && !isHidden,
  );
  return own === undefined || problem.summary === oneLine(own.summary)
    ? problem
    : { ...problem, summary: oneLine(`${problem.summary}; ${own.summary}`) };
}

const keyOf = ({ resource, group, namespace, name }: Omit<ObjectRef, "kind" | "uid">): string =>
  `${resource}.${group}/${namespace}/${name}`;

/** `InsufficientResources` to `insufficient resources`. */
const wordsOf = (reason: string): string => reason.replaceAll(/(?<=[a-z])([A-Z])/g, " $1").toLowerCase();
