import { objectRef } from "@coxswain/apimachinery/decisions/decision";
import type { DecisionLog, Description, Outcome } from "@coxswain/apimachinery/decisions/decision-log";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { BindingProgress } from "./binding-cycle.ts";
import { reasonOf } from "./diagnosis.ts";
import { FitError, NoNodesError } from "./framework/status.ts";
import type { Decision } from "./scheduling-cycle.ts";

const source = "scheduler";

/** Records why pods wait and where they were placed; undefined `log`: nothing is recorded. */
export class SchedulingDecisions {
  readonly #log: DecisionLog | undefined;

  constructor(log: DecisionLog | undefined) {
    this.#log = log?.isKeeping ? log : undefined;
  }

  /**
   * @param diagnose evaluates the filters; called only when the decision is read
   * @param preemption outcome of the preemption; undefined when it was not tried
   * @param nextTryMs reads when the queue tries the pod again
   */
  refused(
    pod: Pod,
    err: unknown,
    options: { diagnose: () => Description; preemption: string | undefined; nextTryMs: () => number | undefined },
  ): void {
    const { diagnose, preemption, nextTryMs } = options;
    const withPreemption = (text: string): string => (preemption === undefined ? text : `${text}; ${preemption}`);
    // Only the text, because the error keeps a status for each node in memory.
    const lastAttempt = messageOf(err);
    const lead = err instanceof FitError ? reasonOf(err.unschedulablePlugins) : undefined;
    const outcome: Outcome =
      err instanceof FitError || err instanceof NoNodesError
        ? {
            verdict: "refused",
            reason: lead ?? "NoNodes",
            description: () => {
              const reported = diagnose();
              const { summary, plain, details } = reported;
              const next = nextTryMs();
              return {
                ...reported,
                summary: withPreemption(summary),
                ...(plain !== undefined && { plain: withPreemption(plain) }),
                details: { ...details, lastAttempt },
                ...(next !== undefined && { nextTryMs: next }),
              };
            },
            // Counts only what the decision adds: the pod is cached anyway, the error's text is not.
            sizeBytes: 1000 + lastAttempt.length,
          }
        : { verdict: "failed", reason: "SchedulerError", nextTryMs: nextTryMs(), description: lastAttempt };
    this.#log?.record(objectRef(pods, pod), source, outcome);
  }

  /** Records that a node was chosen for the pod. */
  binding(pod: Pod, progress: BindingProgress): void {
    const description = (): Description => {
      const { point, plugin } = progress;
      const what = point === "PreBind" && plugin === "VolumeBinding" ? "its volumes to be bound" : `${plugin} (${point})`;
      return {
        summary:
          plugin === ""
            ? "a node was selected, and the pod is being bound to it"
            : `a node was selected, and the pod waits for ${what}`,
        details: { point, plugin },
      };
    };
    this.#log?.record(objectRef(pods, pod), source, { verdict: "waiting", reason: "Binding", description, sizeBytes: 300 });
  }

  /** Records the node that was chosen, with the scores of the best candidates. */
  bound(pod: Pod, { feasibleNodes, evaluatedNodes, best }: Decision): void {
    const description = (): Description => {
      const plain =
        feasibleNodes === 1
          ? `placed on the only node that fits, of ${evaluatedNodes} looked at`
          : `placed on the best of ${feasibleNodes} nodes that fit, of ${evaluatedNodes} looked at`;
      if (best.length === 0) return { summary: plain };
      const scores = best.map(({ node, score }) => `${node} ${score}`).join(", ");
      const related = best.map(({ node }) => objectRef(nodes, { metadata: { name: node } }));
      return { summary: `${plain}; scores: ${scores}`, plain, related, details: { best } };
    };
    this.#log?.record(objectRef(pods, pod), source, { verdict: "done", reason: "Scheduled", description, sizeBytes: 400 });
  }

  /** Forgets the decisions about a deleted Pod. */
  gone(pod: Pod): void {
    this.#log?.forgetObject(objectRef(pods, pod));
  }
}
